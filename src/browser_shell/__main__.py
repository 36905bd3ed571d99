"""`python -m browser_shell` and the installed command `browser-shell`."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from types import FrameType

_TERMINATED = 128 + signal.SIGTERM
_LIGHT_COMMANDS = {"health": "browser_shell.commands.health"}
"""Commands that a container runs every few seconds. They import a tenth of what the server imports."""


def main() -> None:
    """Handle SIGTERM, then import and run the command.

    The kernel ignores SIGTERM for the first process of a container until that process installs a handler. The import
    takes most of a second, so the handler comes first.
    """
    signal.signal(signal.SIGTERM, _exit_on_signal)
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    import_module(_LIGHT_COMMANDS.get(command, "browser_shell.commands.cli")).main()


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    sys.exit(_TERMINATED)


if __name__ == "__main__":
    main()
