"""The files of one log, side by side in one directory, and how small ones are replaced whole."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid

OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class LogFiles:
    """Names. `audit.jsonl` is written to; full ones are `audit-000001.jsonl` and so on."""

    active: Path

    @property
    def head(self) -> Path:
        """The latest checkpoint, apart from the log: whoever cuts the log must cut this too."""
        return self.active.with_suffix(".head")

    @property
    def key(self) -> Path:
        return self.active.with_suffix(".key")

    @property
    def public_key(self) -> Path:
        return self.active.with_suffix(".pub")

    @property
    def lock(self) -> Path:
        return self.active.with_suffix(".lock")

    @property
    def next(self) -> Path:
        """A new active file that is not yet in place."""
        return self.active.with_suffix(".next")

    def rotated(self) -> list[Path]:
        """The full files, oldest first. Raises: OSError."""
        name = re.compile(rf"{re.escape(self.active.stem)}-(\d{{6,}}){re.escape(self.active.suffix)}")
        found = [(int(match.group(1)), entry) for entry in self._entries() if (match := name.fullmatch(entry.name))]
        return [entry for _, entry in sorted(found)]

    def next_rotated(self) -> Path:
        rotated = self.rotated()
        number = int(rotated[-1].stem.rpartition("-")[2]) + 1 if rotated else 1
        return self.active.with_name(f"{self.active.stem}-{number:06d}{self.active.suffix}")

    def _entries(self) -> list[Path]:
        return list(self.active.parent.iterdir())


def require_file_or_nothing(path: Path) -> None:
    """Raises: ConfigurationInvalid for a link, a device, a directory."""
    try:
        regular = stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return
    except OSError as cause:
        raise ConfigurationInvalid(f"audit log {path}: {cause.strerror}") from cause
    if not regular:
        raise ConfigurationInvalid(f"audit log {path}: not a regular file")


def open_private(path: Path, flags: int) -> int:
    """A regular file that nobody else can read. Raises: ConfigurationInvalid."""
    try:
        file = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, OWNER_ONLY)
    except OSError as cause:
        raise ConfigurationInvalid(f"audit log {path}: {cause.strerror}") from cause
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ConfigurationInvalid(f"audit log {path}: not a regular file")
    try:
        os.fchmod(file, OWNER_ONLY)
    except OSError as cause:
        os.close(file)
        raise ConfigurationInvalid(f"audit log {path}: is not ours: {cause.strerror}") from cause
    return file


def read_if_there(path: Path) -> bytes | None:
    """Raises: OSError, but not for a file that does not exist."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    return None
