"""Measures this server beside the bare agent-browser CLI, agent-browser's own MCP server and raw CDP, in one run."""
