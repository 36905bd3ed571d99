"""Opens the files that receive the output of Xvnc, the window manager and Chromium."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

import structlog

from browser_shell.core.errors import BrowserUnavailable

log = structlog.get_logger()

# O_NONBLOCK: without it, opening a FIFO that has no reader blocks the event loop. It has no effect on regular files.
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_log_file(path: Path) -> IO[bytes]:
    """Open an empty log file for writing; never follow a link and never touch anything but a regular file.

    Chromium runs under the account that owns the log directory. A compromised browser process could put a link to the
    audit log in the place of a log file, so the file is checked before it is truncated.

    Raises: BrowserUnavailable.
    """
    try:
        handle = os.open(path, _FLAGS, 0o600)
        try:
            _check_regular_file(handle)
            os.ftruncate(handle, 0)
        except OSError:
            os.close(handle)
            raise
    except OSError as cause:
        reason = cause.strerror or str(cause)
        log.warning("log_file_refused", path=str(path), reason=reason)
        raise BrowserUnavailable(
            f"{path.name} cannot be opened ({reason}); remove it from the server's log directory"
        ) from cause
    return os.fdopen(handle, "wb")


def _check_regular_file(handle: int) -> None:
    """Raises: OSError."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a regular file")
    if found.st_nlink != 1:
        raise OSError("it has a second hard link")
