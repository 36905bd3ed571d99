"""The public HTTP listener and its gateway."""
