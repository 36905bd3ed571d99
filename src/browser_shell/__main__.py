"""`python -m browser_shell` and the installed command `browser-shell`."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_EXIT_TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Handle SIGTERM, then import and run the command.

    The kernel ignores SIGTERM for the first process of a container until that process installs a handler. The import
    takes most of a second, so the handler comes first.
    """
    signal.signal(signal.SIGTERM, _exit_on_signal)
    from browser_shell.commands import cli

    cli.main()


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    sys.exit(_EXIT_TERMINATED)


if __name__ == "__main__":
    main()
