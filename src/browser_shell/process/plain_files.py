"""Creates and reads regular files in directories that a compromised browser process can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from browser_shell.core.errors import OutputTooLarge, SandboxUnavailable


def create_file(path: Path, *, mode: int = 0o600) -> IO[bytes]:
    """Create a file in place of whatever has this name. An earlier file, link or FIFO is removed, never opened.

    Raises: OSError, also when a directory has this name.
    """
    path.unlink(missing_ok=True)
    # O_EXCL: an entry that was put there since the unlink is an error. A link is not followed.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    return os.fdopen(descriptor, "wb")


def take_file(path: Path, *, max_bytes: int) -> bytes:
    """Reads a regular file of at most `max_bytes` and removes it.

    Raises: OutputTooLarge, SandboxUnavailable when it is not there or is not a regular file.
    """
    try:
        # Neither follow a link nor hang on a pipe, whoever put it there.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as cause:
        raise SandboxUnavailable("the driver reported a file that is not there") from cause
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise SandboxUnavailable("the driver reported something that is not a file")
        if found.st_size > max_bytes:
            raise OutputTooLarge(f"the file has {found.st_size} bytes; at most {max_bytes} are returned")
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read(max_bytes)
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def read_plain_file(path: Path, *, max_bytes: int) -> bytes | None:
    """A regular file of at most `max_bytes`; None for anything else, and when there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        return file.read(max_bytes) if stat.S_ISREG(found.st_mode) and found.st_size <= max_bytes else None
