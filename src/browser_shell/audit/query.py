"""Reads logs, also while a server writes to them, for people and programs that look at records."""

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
    """One line that could be read."""

    file: str
    line: int
    raw: bytes
    members: dict[str, JsonValue]

    def word(self, name: str) -> str:
        value = self.members.get(name, "")
        return value if isinstance(value, str) else str(value)

    def number(self, name: str) -> float | None:
        value = self.members.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which records are wanted. Times are compared as the log writes them, in UTC."""

    since: str = ""
    until: str = ""
    subject: str = ""
    session: str = ""

    def takes(self, entry: Entry) -> bool:
        time = entry.word("time")
        return (
            (not self.since or time >= self.since)
            and (not self.until or time < self.until)
            and (not self.subject or entry.word("subject") == self.subject)
            and (not self.session or entry.word("session_id") == self.session)
        )


def parse_timestamp(text: str) -> str:
    """A date or time that a person typed, as records have it; UTC without a zone. Raises: ConfigurationInvalid."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as cause:
        raise ConfigurationInvalid(f"{text[:40]!r} is not a date or time such as 2027-01-15T08:00:00Z") from cause
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return when.isoformat(timespec="milliseconds")


@contextmanager
def opened_files(files: LogFiles) -> Iterator[list[tuple[str, BinaryIO]]]:
    """All files of a log, oldest first, each once. Raises: OSError."""
    with ExitStack() as held:
        # The active one first: should it become a full one now, it is the newest that there is to read.
        active = _open(held, files.active) if files.active.exists() else None
        found = [(path.name, _open(held, path)) for path in files.rotated()]
        if active is not None and all(_identity(active) != _identity(file) for _, file in found):
            found.append((files.active.name, active))
        if not found:
            raise FileNotFoundError(f"no audit log at {files.active}")
        yield found


def read_entries(path: Path) -> Iterator[Entry]:
    """Every whole line that is JSON. Whether it is true is the business of `verify`. Raises: OSError."""
    with opened_files(LogFiles(path)) as opened:
        for name, file in opened:
            for number, raw in enumerate(file, 1):
                members = read_entry(raw) if raw.endswith(b"\n") else None
                if members is not None:
                    yield Entry(file=name, line=number, raw=raw, members=members)


def follow_entries(path: Path, *, pause: Callable[[], None]) -> Iterator[Entry]:
    """Lines that come after now, for ever; `pause` is called when there is nothing new. Raises: OSError."""
    file = path.open("rb")
    # At once, not when somebody asks for the first line.
    file.seek(0, os.SEEK_END)
    return _lines_from(path, file, pause)


def _lines_from(path: Path, file: BinaryIO, pause: Callable[[], None]) -> Iterator[Entry]:
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
                # The old file was full before the new one had the name, and has now been read to its end.
                file.close()
                file, successor, rest, number = successor, None, b"", 0
            elif not piece:
                successor = _reopened(path, file)
                if successor is None:
                    pause()
    finally:
        file.close()


def _reopened(path: Path, file: BinaryIO) -> BinaryIO | None:
    """The file that has taken the name, when it is another one."""
    try:
        newer = path.open("rb")
    except FileNotFoundError:
        return None
    if _identity(newer) == _identity(file):
        newer.close()
        return None
    return newer


def _open(held: ExitStack, path: Path) -> BinaryIO:
    return held.enter_context(path.open("rb", buffering=_BUFFER_BYTES))


def _identity(file: BinaryIO) -> tuple[int, int]:
    facts = os.fstat(file.fileno())
    return facts.st_dev, facts.st_ino
