"""Lists and hashes the files of a run. Links are not followed, pipes are not read, and everything is bounded."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import os
import stat
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

MAX_ENTRIES = 10_000
MAX_DEPTH = 40
MAX_PATH_BYTES = 2048
MAX_FILE_BYTES = 1024 * 1024 * 1024
MAX_TOTAL_BYTES = 2 * 1024 * 1024 * 1024
MAX_LISTED_BYTES = 8 * 1024 * 1024
"""Sum over all paths in JSON, where one byte of a name takes up to five. Bounds the size of the evidence."""
UNLISTED_REASON = "the paths of all entries together are too long"
_CHUNK_BYTES = 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TYPES = mimetypes.MimeTypes()
"""Python's own table, not the machine's: evidence must not depend on the machine."""
for _suffix in (".log", ".md", ".jsonl"):
    _TYPES.add_type("text/plain", _suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    path: str
    size: int
    sha256: str
    mime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEntry:
    """An entry that was not opened or not read."""

    path: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Collected:
    """Everything under a directory, sorted by name."""

    files: list[OutputFile] = field(default_factory=list)
    refused: list[RefusedEntry] = field(default_factory=list)
    empty_directories: list[str] = field(default_factory=list)
    """Directories without any entry; `.` is the collected directory itself."""
    unlisted: int = 0
    """Entries that are only counted (`UNLISTED_REASON`)."""
    cut: bool = False
    """Whether there were more than `MAX_ENTRIES`."""

    @property
    def refused_count(self) -> int:
        return len(self.refused) + self.unlisted


def create_new_file(path: Path) -> FileIO:
    """Create a private file. Raises: OSError, and FileExistsError when anything exists at `path`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return FileIO(os.open(path, flags, 0o600), "w")


def write_all(file: FileIO, data: bytes) -> None:
    """Write until no byte is left; a single write() may be short. Raises: OSError."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def readable_name(name: bytes) -> str | None:
    """Decode a file name; None unless it is UTF-8 and printable.

    Control characters, line separators and the marks that reverse the direction of text are not printable. A backslash
    is refused because escaped names contain it.
    """
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() and "\\" not in text else None


def collect(directory: Path) -> Collected:
    """List a directory tree; a missing directory is empty. Raises: OSError when it is not a directory."""
    walk = _Walk()
    try:
        root = os.open(directory, _OPEN | os.O_DIRECTORY)
    except FileNotFoundError:
        return walk.collected
    walk.enter(root, "", 0)
    return walk.collected


def hash_file(path: Path) -> OutputFile:
    """Hash a file that the server wrote. Raises: OSError, also when it is not a regular file."""
    handle = os.open(path, _OPEN)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(f"{path} is not a regular file")
        return _hash(handle, path.name, facts.st_size)
    finally:
        os.close(handle)


@dataclass(slots=True)
class _Walk:
    """Depth first, by descriptors: the checked entry is the one that is read."""

    collected: Collected = field(default_factory=Collected)
    entries: int = 0
    file_bytes: int = 0
    listed_bytes: int = 0

    def enter(self, directory: int, above: str, depth: int) -> None:
        try:
            names = self._names(directory)
            path = above.removesuffix("/") or "."
            if names is None and self._can_list(path):
                self.collected.empty_directories.append(path)
            for name in names or ():
                self._entry(directory, name, above, depth)
        finally:
            os.close(directory)

    def _names(self, directory: int) -> list[bytes] | None:
        """Return at most `MAX_ENTRIES` names over all directories, sorted; None for an empty directory."""
        names: list[bytes] = []
        empty = True
        with os.scandir(directory) as entries:
            for entry in entries:
                empty = False
                if self.entries >= MAX_ENTRIES:
                    self.collected.cut = True
                    break
                self.entries += 1
                names.append(os.fsencode(entry.name))
        return None if empty else sorted(names)

    def _entry(self, directory: int, name: bytes, above: str, depth: int) -> None:
        text = readable_name(name)
        path = f"{above}{_escape(name) if text is None else text}"
        if text is None:
            self._refuse(path, "its name is not printable UTF-8")
        elif depth >= MAX_DEPTH or len(path.encode()) > MAX_PATH_BYTES:
            self._refuse(path, "too deep, or too long a path")
        else:
            self._open(directory, name, path, depth)

    def _open(self, directory: int, name: bytes, path: str, depth: int) -> None:
        try:
            handle = os.open(name, _OPEN, dir_fd=directory)
        except OSError:
            # ELOOP: a link. ENXIO: a socket. EACCES: not readable.
            self._refuse(path, "a link, a socket, or not readable")
            return
        facts = os.fstat(handle)
        if stat.S_ISDIR(facts.st_mode):
            self.enter(handle, f"{path}/", depth + 1)
            return
        try:
            self._file(handle, path, facts)
        finally:
            os.close(handle)

    def _file(self, handle: int, path: str, facts: os.stat_result) -> None:
        if not stat.S_ISREG(facts.st_mode):
            self._refuse(path, "a pipe or a device")
        elif facts.st_nlink > 1:
            self._refuse(path, "it has a second name")
        elif facts.st_size > MAX_FILE_BYTES or self.file_bytes + facts.st_size > MAX_TOTAL_BYTES:
            self._refuse(path, "too large")
        elif self._can_list(path):
            self.file_bytes += facts.st_size
            self.collected.files.append(_hash(handle, path, facts.st_size))

    def _refuse(self, path: str, reason: str) -> None:
        path = path[:MAX_PATH_BYTES]
        if self._can_list(path):
            self.collected.refused.append(RefusedEntry(path=path, reason=reason))

    def _can_list(self, path: str) -> bool:
        """Reserve room for one path, or count the entry as unlisted."""
        needed = len(json.dumps(path))
        if self.listed_bytes + needed > MAX_LISTED_BYTES:
            self.collected.unlisted += 1
            return False
        self.listed_bytes += needed
        return True


def _escape(name: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in name)


def _hash(handle: int, path: str, size: int) -> OutputFile:
    digest, left = hashlib.sha256(), size
    # At most the size that was checked: a file that grows meanwhile costs no more time.
    while left > 0 and (chunk := os.read(handle, min(left, _CHUNK_BYTES))):
        digest.update(chunk)
        left -= len(chunk)
    # By name only: the content is not inspected.
    mime = _TYPES.guess_type(path.rpartition("/")[2])[0] or "application/octet-stream"
    return OutputFile(path=path, size=size - left, sha256=digest.hexdigest(), mime=mime)
