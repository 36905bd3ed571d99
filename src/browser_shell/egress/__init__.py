"""The network access of the browser."""
