"""Values and contracts that every other package shares; no input, no output."""
