"""The output of a run on disk, bounded while it is written."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path


class BoundedLog:
    """Keeps the first `max_bytes` and remembers whether there was more."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = FileIO(os.open(path, flags, 0o600), "w")
        self._max_bytes = max_bytes
        self.size = 0
        self.cut = False

    @property
    def room(self) -> int:
        return self._max_bytes - self.size

    def write(self, data: bytes) -> None:
        kept = data[: self.room]
        self.cut = self.cut or len(kept) < len(data)
        view = memoryview(kept)
        while view:
            view = view[self._file.write(view) :]
        self.size += len(kept)

    def close(self) -> None:
        self._file.close()
