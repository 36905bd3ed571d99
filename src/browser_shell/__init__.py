"""A locked-down browser for AI agents."""

__version__ = "0.1.0"
