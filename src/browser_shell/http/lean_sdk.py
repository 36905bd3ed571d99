"""Opens of the MCP SDK what a server uses.

`import mcp.server.lowlevel` first runs the beginnings of `mcp` and `mcp.server`, which bring in the client, an HTTP
client and a second server framework: 12 MB in every server, and a third of the time that it needs to start. Nothing of
that is used here. So both packages are put in place with their beginnings not yet run; whoever asks one of them for a
name that is not there yet, a plugin for example, gets it run then, and the name.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType

PACKAGES = ("mcp", "mcp.server")


def put_off(name: str) -> None:
    """Puts a package in place whose beginning runs when a name of it is missed. Nothing happens if it has run."""
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = module_from_spec(spec)
    module.__getattr__ = lambda missed: _run_and_get(module, spec, missed)  # type: ignore[method-assign]
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)


def _run_and_get(module: ModuleType, spec: ModuleSpec, missed: str) -> object:
    if missed.startswith("__") and missed != "__all__":
        raise AttributeError(missed)  # Asked by tools that look whether it is there, and never meant for us.
    vars(module).pop("__getattr__", None)
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return getattr(module, missed)
