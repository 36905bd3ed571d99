"""The tools: their descriptions for clients, and their arguments as plans."""
