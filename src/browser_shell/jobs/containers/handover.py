"""Receives the files that a run left under /output, as a stream of records. Every byte of it is untrusted.

The stream starts with a line that names the format. Each record has a kind (1 byte), the length of the path (2), a
size (8), the path and, for a file, its content. `D` is a directory and `F` a file. `E` ends the stream; its path holds
flags: `full` when /output has no room left, `out-of-memory` when the kernel killed a process for memory. Any other kind
names an entry that was not sent, by reason. deploy/jobs/job_init writes the stream in a container whose program may be
hostile, so every path, count and size is checked again here.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from io import FileIO
from pathlib import Path

from browser_shell.core.containers import RefusalReason, RefusedOutput
from browser_shell.jobs.output_files import create_new_file, readable_name, write_all

MAGIC = b"browser-shell hand-over 1\n"
RECORD = struct.Struct(">cHQ")
MAX_DEPTH = 32
MAX_PATH_BYTES = 1024
_MAX_NAME_BYTES = 255
_LISTED_REFUSALS = 100
_REASONS = {
    b"L": RefusalReason.LINK,
    b"S": RefusalReason.SPECIAL_FILE,
    b"U": RefusalReason.UNREADABLE,
    b"B": RefusalReason.TOO_LARGE,
    b"T": RefusalReason.TOO_DEEP,
    b"M": RefusalReason.TOO_MANY,
}


class HandoverReader:
    """Parses the stream incrementally and writes regular files below `directory`. Stops at the first invalid record."""

    def __init__(self, *, directory: Path, max_bytes: int, max_entries: int) -> None:
        self._directory = directory
        self._bytes_left = max_bytes
        self._entries_left = max_entries
        self._pending = bytearray()
        self._parser = self._parse()
        self._file: FileIO | None = None
        self._directories: set[bytes] = {b""}
        self._ended = False
        self.refused: list[RefusedOutput] = []
        self.refused_count = 0
        self.full = False
        self.out_of_memory = False

    def feed(self, data: bytes) -> None:
        """Parse the next piece of the stream. Raises: OSError when a file cannot be written."""
        self._pending += data
        try:
            next(self._parser)
        except (StopIteration, ValueError):
            # The stream has ended or is invalid. One byte of the rest is kept, which makes it incomplete.
            del self._pending[1:]

    @property
    def complete(self) -> bool:
        return self._ended and not self._pending

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _parse(self) -> Generator[None, None, None]:
        """Yield whenever more bytes are needed. Raises: ValueError for an invalid stream, OSError."""
        if (yield from self._take(len(MAGIC))) != MAGIC:
            raise ValueError("another format")
        while True:
            kind, path_length, size = RECORD.unpack((yield from self._take(RECORD.size)))
            if path_length > MAX_PATH_BYTES:
                raise ValueError("a path is too long")
            path = yield from self._take(path_length)
            if kind == b"E":
                flags = path.split(b" ")
                self.full, self.out_of_memory = b"full" in flags, b"out-of-memory" in flags
                self._ended = True
                return
            self._entries_left -= 1
            self._bytes_left -= size
            if self._entries_left < 0 or self._bytes_left < 0 or (size and kind != b"F"):
                raise ValueError("a record is beyond the limits")
            self._accept(kind, path)
            yield from self._copy(size)

    def _take(self, count: int) -> Generator[None, None, bytes]:
        while len(self._pending) < count:
            yield
        taken = bytes(self._pending[:count])
        del self._pending[:count]
        return taken

    def _copy(self, size: int) -> Generator[None, None, None]:
        """Copy the content of a file, or skip it when the file was refused."""
        while size:
            while not self._pending:
                yield
            piece = yield from self._take(min(size, len(self._pending)))
            if self._file is not None:
                write_all(self._file, piece)
            size -= len(piece)
        self.close()

    def _accept(self, kind: bytes, path: bytes) -> None:
        if kind in _REASONS:
            self._refuse(path, _REASONS[kind])
        elif kind not in (b"D", b"F"):
            raise ValueError("a kind is unknown")
        elif not is_plain_path(path) or path.rpartition(b"/")[0] not in self._directories:
            self._refuse(path, RefusalReason.BAD_NAME)
        else:
            self._create(kind, self._directory / path.decode("utf-8"))
            if kind == b"D":
                self._directories.add(path)

    def _create(self, kind: bytes, target: Path) -> None:
        try:
            if kind == b"D":
                target.mkdir(mode=0o700)
            else:
                self._file = create_new_file(target)
        except FileExistsError as error:
            # A real directory never lists a name twice.
            raise ValueError("a name occurs twice") from error

    def _refuse(self, path: bytes, reason: RefusalReason) -> None:
        self.refused_count += 1
        if len(self.refused) < _LISTED_REFUSALS:
            self.refused.append(RefusedOutput(path=_ascii(path), reason=reason))


def is_plain_path(path: bytes) -> bool:
    """Whether a path is relative, not too deep, and every name in it is readable text."""
    names = path.split(b"/")
    return len(path) <= MAX_PATH_BYTES and len(names) <= MAX_DEPTH and all(map(_is_plain_name, names))


def _is_plain_name(name: bytes) -> bool:
    return name not in (b"", b".", b"..") and len(name) <= _MAX_NAME_BYTES and readable_name(name) is not None


def _ascii(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")[:MAX_PATH_BYTES]
