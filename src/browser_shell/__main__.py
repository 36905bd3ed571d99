"""`python -m browser_shell`, and what the installed command begins with."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from types import FrameType

from browser_shell.core.putting_off import put_off

_TERMINATED = 128 + signal.SIGTERM
_QUICK = {"health": "browser_shell.health_command"}
"""Commands that a container asks for every few seconds, and that need a tenth of what the server needs."""


def main() -> None:
    """Runs the command, and can be ended from its very first moment.

    The first process of a container has no default signal actions: until somebody handles SIGTERM, the kernel drops it.
    The command is imported only then, because that takes most of a second.
    """
    signal.signal(signal.SIGTERM, _end)
    # Else `zoneinfo`, which pydantic loads, loads all that is known of how Python was built, to find this out.
    os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo")  # noqa: TID251  set for Python, not read
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command not in _QUICK:
        _load_less()
    import_module(_QUICK.get(command, "browser_shell.cli")).main()


def _load_less() -> None:
    """What others load, and no server has a use for: half a megabyte, and 3 more where `rich` is installed."""
    # For reading a logging configuration from a file, and for finding a proxy in the environment.
    for name in ("logging.config", "urllib.request"):
        put_off(name)
    # structlog draws tracebacks with it, for a terminal that nobody looks at.
    if "rich" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]  # how Python is told that there is no such module
        import_module("structlog")
        del sys.modules["rich"]


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(_TERMINATED)


if __name__ == "__main__":
    main()
