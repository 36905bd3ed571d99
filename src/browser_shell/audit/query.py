"""Read and select records, also while a server writes the log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from browser_shell.audit.chain import read_entry
from browser_shell.audit.storage import LogFiles
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.json_values import JsonValue

_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One parsed line."""

    file: str
    line: int
    raw: bytes
    members: dict[str, JsonValue]

    def text(self, name: str) -> str:
        """Return a member as text, '' if it is missing."""
        value = self.members.get(name, "")
        return value if isinstance(value, str) else str(value)

    def number(self, name: str) -> float | None:
        value = self.members.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Filters for records. Empty filters match everything. Times have the form of the log, in UTC."""

    since: str = ""
    until: str = ""
    subject: str = ""
    session: str = ""

    def matches(self, entry: Entry) -> bool:
        time = entry.text("time")
        return (
            (not self.since or time >= self.since)
            and (not self.until or time < self.until)
            and (not self.subject or entry.text("subject") == self.subject)
            and (not self.session or entry.text("session_id") == self.session)
        )


def parse_timestamp(text: str) -> str:
    """Convert a date or time to the form of the log; UTC if it has no zone. Raises: ConfigurationInvalid."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as cause:
        raise ConfigurationInvalid(f"{text[:40]!r} is not a date or time such as 2027-01-15T08:00:00Z") from cause
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.isoformat(timespec="milliseconds")


@contextmanager
def open_log_files(files: LogFiles) -> Iterator[list[tuple[str, BinaryIO]]]:
    """Open all files of a log, oldest first. Raises: OSError."""
    with ExitStack() as stack:
        # The active file first: if it is rotated now, it appears among the full files and is not read twice.
        active = _open(stack, files.active) if files.active.exists() else None
        opened = [(path.name, _open(stack, path)) for path in files.rotated()]
        if active is not None and all(_identity(active) != _identity(file) for _, file in opened):
            opened.append((files.active.name, active))
        if not opened:
            raise FileNotFoundError(f"no audit log at {files.active}")
        yield opened


def read_entries(path: Path) -> Iterator[Entry]:
    """Read every complete JSON line without verifying it. Raises: OSError."""
    with open_log_files(LogFiles(path)) as opened:
        for name, file in opened:
            for number, raw in enumerate(file, 1):
                members = read_entry(raw) if raw.endswith(b"\n") else None
                if members is not None:
                    yield Entry(file=name, line=number, raw=raw, members=members)


def follow_entries(path: Path, *, pause: Callable[[], None]) -> Iterator[Entry]:
    """Yield new lines without end. Calls `pause` when there is nothing new. Raises: OSError."""
    file = path.open("rb")
    # Outside of the generator, which would seek only when the first line is requested.
    file.seek(0, os.SEEK_END)
    return _follow(path, file, pause)


def _follow(path: Path, file: BinaryIO, pause: Callable[[], None]) -> Iterator[Entry]:
    rest, number, successor = b"", 0, None
    try:
        while True:
            piece = file.readline()
            rest += piece
            if rest.endswith(b"\n"):
                number += 1
                members = read_entry(rest)
                if members is not None:
                    yield Entry(file=path.name, line=number, raw=rest, members=members)
                rest = b""
            elif not piece and successor is not None:
                # The old file was complete before the new one got its name, and is now read to its end.
                file.close()
                file, successor, rest, number = successor, None, b"", 0
            elif not piece:
                successor = _open_successor(path, file)
                if successor is None:
                    pause()
    finally:
        file.close()


def _open_successor(path: Path, file: BinaryIO) -> BinaryIO | None:
    """Open the file that now has the name; None if it is still the same one."""
    try:
        newer = path.open("rb")
    except FileNotFoundError:
        return None
    if _identity(newer) == _identity(file):
        newer.close()
        return None
    return newer


def _open(stack: ExitStack, path: Path) -> BinaryIO:
    return stack.enter_context(path.open("rb", buffering=_BUFFER_BYTES))


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino
