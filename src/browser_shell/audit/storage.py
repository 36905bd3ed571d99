"""The files of a log: names, permissions, the writer's lock, and reading them all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from browser_shell.core.errors import ConfigurationInvalid

_OWNER_ONLY = 0o600


class LogFiles:
    """Paths of one log. `audit.jsonl` is the active file; full files are `audit-000001.jsonl` and so on."""

    def __init__(self, active: Path) -> None:
        self.active = active
        self.head = active.with_suffix(".head")
        """A copy of the latest checkpoint, which reveals that the end of the log was cut."""
        self.key = active.with_suffix(".key")
        self.public_key = active.with_suffix(".pub")
        self.lock = active.with_suffix(".lock")
        self.next = active.with_suffix(".next")
        """The next active file, before rotation renames it."""

    def rotated(self) -> list[Path]:
        """List the full files, oldest first. Raises: OSError."""
        name = re.compile(rf"{re.escape(self.active.stem)}-(\d{{6,}}){re.escape(self.active.suffix)}")
        entries = list(self.active.parent.iterdir())
        found = [(int(match.group(1)), entry) for entry in entries if (match := name.fullmatch(entry.name))]
        return [entry for _, entry in sorted(found)]

    def next_rotated(self) -> Path:
        rotated = self.rotated()
        number = int(rotated[-1].stem.rpartition("-")[2]) + 1 if rotated else 1
        return self.active.with_name(f"{self.active.stem}-{number:06d}{self.active.suffix}")


def require_file_or_nothing(path: Path) -> None:
    """Raises: ConfigurationInvalid for anything but a regular file or a free path, such as a symbolic link."""
    try:
        regular = stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return
    except OSError as cause:
        raise ConfigurationInvalid(f"audit log {path}: {cause.strerror}") from cause
    if not regular:
        raise ConfigurationInvalid(f"audit log {path}: not a regular file")


def open_private(path: Path) -> int:
    """Open a regular file that only its owner can read. Raises: ConfigurationInvalid."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, _OWNER_ONLY)
    except OSError as cause:
        raise ConfigurationInvalid(f"audit log {path}: {cause.strerror}") from cause
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ConfigurationInvalid(f"audit log {path}: not a regular file")
    try:
        os.fchmod(file, _OWNER_ONLY)
    except OSError as cause:
        os.close(file)
        raise ConfigurationInvalid(f"audit log {path}: belongs to another user: {cause.strerror}") from cause
    return file


def lock_for_writing(files: LogFiles) -> int:
    """Take the writer's lock. Raises: ConfigurationInvalid, also when another process has it."""
    lock = open_private(files.lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as cause:
        os.close(lock)
        raise ConfigurationInvalid(f"audit log {files.active}: another server writes to it") from cause
    return lock


def read_if_exists(path: Path) -> bytes | None:
    """Raises: OSError, except for a missing file."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    return None


@contextlib.contextmanager
def open_log_files(files: LogFiles) -> Iterator[list[tuple[str, BinaryIO]]]:
    """Open all files of a log, oldest first. Raises: OSError."""
    with contextlib.ExitStack() as stack:
        # The active file first: if it is rotated now, it appears among the full files and is not read twice.
        active = stack.enter_context(files.active.open("rb")) if files.active.exists() else None
        opened: list[tuple[str, BinaryIO]] = [
            (path.name, stack.enter_context(path.open("rb"))) for path in files.rotated()
        ]
        if active is not None and not any(is_same_file(active, file) for _, file in opened):
            opened.append((files.active.name, active))
        if not opened:
            raise FileNotFoundError(f"no audit log at {files.active}")
        yield opened


def is_same_file(one: BinaryIO, other: BinaryIO) -> bool:
    return os.path.sameopenfile(one.fileno(), other.fileno())
