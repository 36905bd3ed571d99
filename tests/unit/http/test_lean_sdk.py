"""A server carries no MCP client around, and whoever wants one still gets it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

UNUSED = (
    "mcp.client.session",
    "mcp.server.mcpserver.server",
    "httpx2",
    "click",
    "multiprocessing",
    "uvicorn.supervisors",
)


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_server_leaves_unopened_what_it_does_not_use() -> None:
    # Up and listening: some of it is asked for only then.
    script = (
        "import sys, anyio, browser_shell.cli\n"
        "from browser_shell.testing.fakes import a_pipeline\n"
        "from browser_shell.testing.live import serving\n"
        "async def main():\n"
        "    async with serving(a_pipeline()):\n"
        f"        print([name for name in {UNUSED!r} if name in sys.modules])\n"
        "anyio.run(main)"
    )
    assert run(script) == "[]"


def test_the_command_loads_neither_how_python_was_built_nor_a_terminals_colours() -> None:
    assert find_spec("rich"), "without it this test could not fail"
    script = (
        "import contextlib, sys\n"
        "from browser_shell.__main__ import main\n"
        "sys.argv = ['browser-shell', '--help']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "unwanted = ('_sysconfigdata', 'rich', 'urllib.response', 'socketserver')\n"
        "unwanted = [name for name in sys.modules if name.startswith(unwanted)]\n"
        "import logging.config, rich, urllib.request\n"
        "from urllib.request import urlopen\n"
        "logging.config.dictConfig({'version': 1})\n"
        "print('websockets.proxy' in sys.modules, 'structlog' in sys.modules, callable(urlopen), unwanted)"
    )
    assert run(script).endswith("True True True []")


def test_a_plugin_that_wants_the_client_gets_it() -> None:
    script = (
        "import browser_shell.app, mcp, mcp.server\n"
        "from mcp import ClientSession\n"
        "from mcp.server import Server, MCPServer\n"
        "from mcp.server.lowlevel import Server as Low\n"
        "from browser_shell.http.mcp_endpoint import Server as Ours\n"
        "print(ClientSession.__name__, MCPServer.__name__, Server is Low is Ours, mcp.server.Server is Low)"
    )
    assert run(script) == "ClientSession MCPServer True True"


def test_a_plugin_that_wants_uvicorn_whole_gets_it() -> None:
    script = (
        "import browser_shell.app\n"
        "from uvicorn import __version__\n"
        "import uvicorn, uvicorn.server\n"
        "from uvicorn.main import Server as Mains\n"
        "print(callable(uvicorn.run), callable(uvicorn.main), uvicorn.Server is uvicorn.server.Server is Mains)\n"
        "from uvicorn.main import main\n"
        "print(main is uvicorn.main, bool(__version__))"
    )
    assert run(script) == "True True True\nTrue True"


def test_a_client_that_was_there_first_stays() -> None:
    script = (
        "import mcp, sys\nbefore = mcp\nimport browser_shell.http.mcp_endpoint\n"
        "print(sys.modules['mcp'] is before, mcp.ClientSession.__name__)"
    )
    assert run(script) == "True ClientSession"


def test_names_that_nobody_has_are_missed_as_usual() -> None:
    script = "import browser_shell.app, mcp\nprint(hasattr(mcp, '__wrapped__'), hasattr(mcp, 'no_such_name'))"
    assert run(script) == "False False"
