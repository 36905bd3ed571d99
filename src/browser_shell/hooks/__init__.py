"""The chain around every call, and the built-in hooks."""
