"""The MCP protocol, over HTTP and stdio."""
