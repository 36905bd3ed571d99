"""Opens of the MCP SDK, and of the HTTP server, what a server uses.

`import mcp.server.lowlevel` first runs the beginnings of `mcp` and `mcp.server`, which bring in the client, an HTTP
client and a second server framework: 12 MB in every server, and a third of the time that it needs to start. `uvicorn`
brings in its command line and a supervisor of processes, 2 MB. Nothing of that is used here. So their bodies
are put off until somebody, a plugin for example, asks for more.
"""

from __future__ import annotations

import sys

from browser_shell.core.putting_off import put_off


def open_what_is_used() -> None:
    for name in ("mcp", "mcp.server", "uvicorn", "uvicorn.main"):
        put_off(name)
    from uvicorn.config import Config
    from uvicorn.server import Server

    # What other modules that are used here ask these two for.
    vars(sys.modules["uvicorn"]).setdefault("Config", Config)
    if vars(sys.modules["uvicorn"]).get("main") is sys.modules["uvicorn.main"]:
        del vars(sys.modules["uvicorn"])["main"]  # A function of that name, for whoever asks for it.
    vars(sys.modules["uvicorn.main"]).setdefault("Server", Server)
