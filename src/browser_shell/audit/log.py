"""The audit log: one JSON object a line, appended, by one writer."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio.to_thread

from browser_shell.core.errors import AuditUnavailable, ConfigurationInvalid
from browser_shell.core.ports import Clock
from browser_shell.core.records import AuditRecord, RecordKind

LONGEST_LINE_BYTES = 64 * 1024
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_BEFORE_THE_ACT = frozenset({RecordKind.SANDBOX_EXEC})
"""Flushed to the disk before anything runs. It takes the records before it along, so a call pays for one flush."""


class JsonLinesAudit:
    """Appends records to a file that only its owner can read."""

    def __init__(self, *, path: Path, clock: Clock) -> None:
        """Raises: ConfigurationInvalid when the file cannot be opened or another server writes to it."""
        self._clock = clock
        try:
            self._file = os.open(path, _FLAGS, 0o600)
        except OSError as error:
            raise ConfigurationInvalid(f"audit log {path}: {error.strerror}") from error
        try:
            self._claim(path)
            tail = self._tail()
        except BaseException:
            os.close(self._file)
            raise
        self._next_number = _last_number(tail) + 1
        self._torn = bool(tail) and not tail.endswith(b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)

    async def record(self, record: AuditRecord) -> None:
        """Raises: AuditUnavailable."""
        try:
            # Appending to the page cache takes microseconds, less than handing the line to a thread. Without an await
            # in between, lines and their numbers have one order.
            self._append(record)
            if record.kind in _BEFORE_THE_ACT:
                await anyio.to_thread.run_sync(os.fdatasync, self._file)
        except OSError as error:
            raise AuditUnavailable("the audit log cannot be written") from error

    def _append(self, record: AuditRecord) -> None:
        line = (b"\n" if self._torn else b"") + self._line(record)
        self._torn = True
        if os.write(self._file, line) != len(line):
            raise OSError("the line was written in part")
        self._torn = False
        self._next_number += 1

    def _line(self, record: AuditRecord) -> bytes:
        moment = datetime.fromtimestamp(self._clock.wall(), UTC).isoformat(timespec="milliseconds")
        facts = {name: value for name, value in asdict(record).items() if value not in ("", None)}
        entry = {"seq": self._next_number, "time": moment, **facts, "kind": record.kind.value}
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"

    def _claim(self, path: Path) -> None:
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise ConfigurationInvalid(f"audit log {path}: not a regular file")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(self._file, 0o600)
        except OSError as error:
            raise ConfigurationInvalid(f"audit log {path}: another server writes to it, or it is not ours") from error

    def _tail(self) -> bytes:
        end = os.fstat(self._file).st_size
        return os.pread(self._file, LONGEST_LINE_BYTES, max(0, end - LONGEST_LINE_BYTES))


def _last_number(tail: bytes) -> int:
    for line in reversed(tail.splitlines()):
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a line that a crash tore
        if isinstance(entry, dict) and isinstance(entry.get("seq"), int):
            return int(entry["seq"])
    return 0
