"""A locked-down browser for AI agents."""

__version__ = "0.2.0"
