"""Regular files: creation and bounded reads that follow no link, and atomic replacement."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
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


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read. After a crash it has its old or its new content.

    Raises: OSError; then the old content is still there.
    """
    temporary = path.with_name(f".{path.name}.new")
    with create_file(temporary) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make created and renamed entries of a directory durable. Raises: OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def take_file(path: Path, *, max_bytes: int) -> bytes:
    """Read a regular file and remove it.

    Raises: OutputTooLarge, SandboxUnavailable when it is missing or not a regular file.
    """
    try:
        with _open_without_waiting(path) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SandboxUnavailable("the driver reported something that is not a file")
            if status.st_size > max_bytes:
                raise OutputTooLarge(f"the file has {status.st_size} bytes; at most {max_bytes} are returned")
            return file.read(max_bytes)
    except OSError as cause:
        raise SandboxUnavailable("the driver reported a file that cannot be read") from cause
    finally:
        with suppress(OSError):
            path.unlink()


def read_plain_file(path: Path, *, max_bytes: int) -> bytes | None:
    """Read a regular file of at most `max_bytes`; None for anything else, and for a missing file."""
    with suppress(OSError), _open_without_waiting(path) as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes:
            return file.read(max_bytes)
    return None


def _open_without_waiting(path: Path) -> IO[bytes]:
    """Open a file for reading; never follow a link, and never wait for the writer of a FIFO. Raises: OSError."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    return open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))
