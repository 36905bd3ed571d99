"""Modules that are there, and run only when somebody needs them.

Many a module imports another for a case that never comes up here. The other one is put in place with its body not yet
run; whoever asks it for a name that is not there yet gets it run then, and the name.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType


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
    if parent:
        setattr(sys.modules[parent], own, module)


def _run_and_get(module: ModuleType, spec: ModuleSpec, missed: str) -> object:
    if missed.startswith("__") and missed not in ("__all__", "__version__"):
        raise AttributeError(missed)  # Asked by tools that look whether it is there, and never meant for us.
    vars(module).pop("__getattr__", None)
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return getattr(module, missed)
