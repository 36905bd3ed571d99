"""Takes over what a run left under /output, as a stream of records, and believes none of it.

The stream: a line that names the format, then records of kind (1 byte), length of the path (2), size (8), the path and,
for a file, its content. `D` is a directory, `F` a file, `E` the end, with words for a path: `full` when /output
had no room left, `out-of-memory` when the kernel killed for memory. Every other kind is something that was not sent, by
reason. deploy/jobs/job_init writes it, in a container whose program may be hostile: so every path, count and size is
judged here again.
"""

from __future__ import annotations

import os
import struct
from io import FileIO
from pathlib import Path

from browser_shell.core.containers import RefusalReason, RefusedOutput

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
    """Fed with the stream as it comes; writes plain files below `directory`. A broken stream is read no further."""

    def __init__(self, *, directory: Path, max_bytes: int, max_entries: int) -> None:
        self._directory = directory
        self._bytes_left = max_bytes
        self._entries_left = max_entries
        self._pending = bytearray()
        self._begun = False
        self._file: FileIO | None = None
        self._file_left = 0
        self._directories: set[bytes] = {b""}
        self.refused: list[RefusedOutput] = []
        self.refused_count = 0
        self.full = False
        self.out_of_memory = False
        self._ended = False
        self.broken = False

    def feed(self, data: bytes) -> None:
        self._pending += data
        while not self.broken and not self._ended and self._step():
            pass
        if self._ended and self._pending:
            # Nothing follows the end.
            self.broken = True
        if self.broken:
            self._pending.clear()

    @property
    def complete(self) -> bool:
        return self._ended and not self.broken

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _step(self) -> bool:
        """Takes one piece from what is pending; False when there is not enough of it."""
        if not self._begun:
            return self._begin()
        if self._file_left or self._file is not None:
            return self._content()
        return self._record()

    def _begin(self) -> bool:
        if len(self._pending) < len(MAGIC):
            return False
        self.broken = not self._pending.startswith(MAGIC)
        del self._pending[: len(MAGIC)]
        self._begun = True
        return True

    def _content(self) -> bool:
        piece = bytes(self._pending[: self._file_left])
        del self._pending[: len(piece)]
        if self._file is not None:
            view = memoryview(piece)
            while view:
                view = view[self._file.write(view) :]
        self._file_left -= len(piece)
        if self._file_left == 0:
            self.close()
            return True
        return False

    def _record(self) -> bool:
        if len(self._pending) < RECORD.size:
            return False
        kind, path_length, size = RECORD.unpack_from(self._pending)
        if path_length > MAX_PATH_BYTES:
            self.broken = True
            return True
        if len(self._pending) < RECORD.size + path_length:
            return False
        path = bytes(self._pending[RECORD.size : RECORD.size + path_length])
        del self._pending[: RECORD.size + path_length]
        self._take(kind, path, size)
        return True

    def _take(self, kind: bytes, path: bytes, size: int) -> None:
        if kind == b"E":
            words = path.split(b" ")
            self.full = b"full" in words
            self.out_of_memory = b"out-of-memory" in words
            self._ended = True
            return
        self._entries_left -= 1
        if self._entries_left < 0 or (size and kind != b"F") or size > self._bytes_left:
            self.broken = True
        elif kind in _REASONS:
            self._refuse(path, _REASONS[kind])
        elif kind in (b"D", b"F"):
            self._bytes_left -= size
            self._make(kind, path, size)
        else:
            self.broken = True

    def _make(self, kind: bytes, path: bytes, size: int) -> None:
        parent = path.rpartition(b"/")[0]
        self._file_left = size
        if not is_plain_path(path) or parent not in self._directories:
            self._refuse(path, RefusalReason.BAD_NAME)
            return
        place = self._directory / path.decode("utf-8")
        try:
            if kind == b"D":
                place.mkdir(mode=0o700)
                self._directories.add(path)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = FileIO(os.open(place, flags, 0o600), "w")
        except FileExistsError:
            # No directory has a name twice, so this is no honest hand-over.
            self.broken = True

    def _refuse(self, path: bytes, reason: RefusalReason) -> None:
        self.refused_count += 1
        if len(self.refused) < _LISTED_REFUSALS:
            self.refused.append(RefusedOutput(path=_printable(path), reason=reason))


def is_plain_path(path: bytes) -> bool:
    """Relative, not deep, every name such that people and programs read it alike."""
    names = path.split(b"/")
    return len(path) <= MAX_PATH_BYTES and len(names) <= MAX_DEPTH and all(map(_is_plain_name, names))


def _is_plain_name(name: bytes) -> bool:
    if not name or name in (b".", b"..") or len(name) > _MAX_NAME_BYTES:
        return False
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    # Control characters, line separators and the marks that reverse the direction of text are not printable.
    return text.isprintable() and "\\" not in text


def _printable(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")[:MAX_PATH_BYTES]
