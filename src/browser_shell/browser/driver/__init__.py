"""agent-browser: its daemon, its protocol and its replies."""
