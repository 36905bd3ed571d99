"""Creates the files that receive the output of Xvnc, the window manager and Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import structlog

from browser_shell.core.errors import BrowserUnavailable
from browser_shell.process.plain_files import create_file

log = structlog.get_logger()


def open_log_file(path: Path) -> IO[bytes]:
    """Create an empty log file in place of an earlier one.

    Raises: BrowserUnavailable.
    """
    try:
        return create_file(path)
    except OSError as cause:
        log.warning("log_file_refused", path=str(path), reason=cause.strerror)
        raise BrowserUnavailable(
            f"{path.name} cannot be created ({cause.strerror}); remove it from the server's log directory"
        ) from cause
