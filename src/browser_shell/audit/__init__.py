"""Evidence of every call."""
