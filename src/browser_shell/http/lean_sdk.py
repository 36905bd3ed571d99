"""Opens of the MCP SDK, and of the HTTP server, what a server uses.

`import mcp.server.lowlevel` first runs the beginnings of `mcp` and `mcp.server`, which bring in the client, an HTTP
client and a second server framework: 12 MB in every server, and a third of the time that it needs to start. `uvicorn`
brings in its command line and a supervisor of processes, 2 MB. Nothing of that is used here. So these modules are put
in place with their bodies not yet run; whoever asks one of them for a name that is not there yet, a plugin for example,
gets it run then, and the name.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType


def open_what_is_used() -> None:
    for name in ("mcp", "mcp.server", "uvicorn", "uvicorn.main"):
        put_off(name)
    from uvicorn.config import Config
    from uvicorn.server import Server

    # What other modules that are used here ask these two for.
    vars(sys.modules["uvicorn"]).setdefault("Config", Config)
    vars(sys.modules["uvicorn.main"]).setdefault("Server", Server)


def put_off(name: str) -> None:
    """Puts a module in place whose body runs when a name of it is missed. Nothing happens if it has run."""
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = module_from_spec(spec)
    module.__getattr__ = lambda missed: _run_and_get(module, spec, missed)  # type: ignore[method-assign]
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if spec.submodule_search_locations is not None and parent:
        setattr(sys.modules[parent], own, module)  # Not for a plain module: `uvicorn.main` is a function, once it ran.


def _run_and_get(module: ModuleType, spec: ModuleSpec, missed: str) -> object:
    if missed.startswith("__") and missed not in ("__all__", "__version__"):
        raise AttributeError(missed)  # Asked by tools that look whether it is there, and never meant for us.
    vars(module).pop("__getattr__", None)
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return getattr(module, missed)
