"""Receives the files that a run left under /output, as a stream of records. Every byte of it is untrusted.

The stream starts with a line that names the format. Each record has a kind (1 byte), the length of the path (2), a
size (8), the path and, for a file, its content. `D` is a directory and `F` a file. `E` ends the stream; its path holds
flags: `full` when /output has no room left, `out-of-memory` when the kernel killed a process for memory. Any other kind
names an entry that was not sent, by reason. deploy/jobs/job_init writes the stream in a container whose program may be
hostile, so every path, count and size is checked again here.
"""

from __future__ import annotations

import struct
from io import FileIO
from pathlib import Path

from browser_shell.core.containers import RefusalReason, RefusedOutput
from browser_shell.jobs.output_files import create_file, readable_name, write_all

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
        self._has_magic = False
        self._file: FileIO | None = None
        self._file_left = 0
        self._directories: set[bytes] = {b""}
        self.refused: list[RefusedOutput] = []
        self.refused_count = 0
        self.full = False
        self.out_of_memory = False
        self._ended = False
        self._invalid = False

    def feed(self, data: bytes) -> None:
        """Parse the next piece of the stream. Raises: OSError when a file cannot be written."""
        self._pending += data
        while not self._invalid and not self._ended and self._parse_next():
            pass
        if self._ended and self._pending:
            self._invalid = True
        if self._invalid:
            self._pending.clear()

    @property
    def complete(self) -> bool:
        return self._ended and not self._invalid

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _parse_next(self) -> bool:
        """Consume one element of the pending bytes; False when more bytes are needed."""
        if not self._has_magic:
            return self._parse_magic()
        if self._file_left or self._file is not None:
            return self._parse_content()
        return self._parse_record()

    def _parse_magic(self) -> bool:
        if len(self._pending) < len(MAGIC):
            return False
        self._invalid = not self._pending.startswith(MAGIC)
        del self._pending[: len(MAGIC)]
        self._has_magic = True
        return True

    def _parse_content(self) -> bool:
        piece = bytes(self._pending[: self._file_left])
        del self._pending[: len(piece)]
        if self._file is not None:
            write_all(self._file, piece)
        self._file_left -= len(piece)
        if self._file_left:
            return False
        self.close()
        return True

    def _parse_record(self) -> bool:
        if len(self._pending) < RECORD.size:
            return False
        kind, path_length, size = RECORD.unpack_from(self._pending)
        if path_length > MAX_PATH_BYTES:
            self._invalid = True
            return True
        end = RECORD.size + path_length
        if len(self._pending) < end:
            return False
        path = bytes(self._pending[RECORD.size : end])
        del self._pending[:end]
        self._accept(kind, path, size)
        return True

    def _accept(self, kind: bytes, path: bytes, size: int) -> None:
        if kind == b"E":
            flags = path.split(b" ")
            self.full = b"full" in flags
            self.out_of_memory = b"out-of-memory" in flags
            self._ended = True
            return
        self._entries_left -= 1
        if self._entries_left < 0 or (size and kind != b"F") or size > self._bytes_left:
            self._invalid = True
        elif kind in _REASONS:
            self._refuse(path, _REASONS[kind])
        elif kind in (b"D", b"F"):
            self._bytes_left -= size
            self._create(kind, path, size)
        else:
            self._invalid = True

    def _create(self, kind: bytes, path: bytes, size: int) -> None:
        self._file_left = size
        if not is_plain_path(path) or path.rpartition(b"/")[0] not in self._directories:
            self._refuse(path, RefusalReason.BAD_NAME)
            return
        target = self._directory / path.decode("utf-8")
        try:
            if kind == b"D":
                target.mkdir(mode=0o700)
                self._directories.add(path)
            else:
                self._file = create_file(target)
        except FileExistsError:
            # A real directory never lists a name twice.
            self._invalid = True

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
