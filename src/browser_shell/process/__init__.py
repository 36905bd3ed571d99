"""The only package that starts programs."""
