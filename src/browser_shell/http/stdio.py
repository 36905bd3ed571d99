"""The same MCP server over standard input and output, for clients that start their servers themselves."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from browser_shell.core.ports import CallHandler, NewId
from browser_shell.http.mcp_endpoint import INSTRUCTIONS, build_server


async def run_stdio(handler: CallHandler, *, new_id: NewId, instructions: str = INSTRUCTIONS) -> None:
    """Serve one client until its end of file; calls that are still running are then cancelled.

    Standard output belongs to the protocol: whatever else is printed there goes to standard error.
    """
    server = build_server(handler, new_id=new_id, instructions=instructions)
    async with stdio_server() as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())
