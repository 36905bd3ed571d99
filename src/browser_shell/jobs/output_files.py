"""Looks at what a run left behind: no link is followed, no pipe is waited for, everything has a cap."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

MAX_ENTRIES = 10_000
MAX_DEPTH = 40
MAX_PATH_BYTES = 2048
MAX_FILE_BYTES = 1024 * 1024 * 1024
MAX_TOTAL_BYTES = 2 * 1024 * 1024 * 1024
MAX_LISTED_BYTES = 8 * 1024 * 1024
"""Of all paths together as JSON has them, where a byte of a name becomes up to five: evidence has to stay readable."""
UNLISTED_REASON = "the paths of all entries together are too long"
_CHUNK_BYTES = 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TYPES = mimetypes.MimeTypes()
"""Without the machine's own tables: evidence says the same everywhere."""
for _ending in (".log", ".md", ".jsonl"):
    _TYPES.add_type("text/plain", _ending)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """One plain file."""

    path: str
    size: int
    sha256: str
    mime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEntry:
    """Something that is not looked into."""

    path: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Collected:
    """Everything under a directory, in the order of its names."""

    files: list[OutputFile] = field(default_factory=list)
    refused: list[RefusedEntry] = field(default_factory=list)
    empty_directories: list[str] = field(default_factory=list)
    """Those that no path of a file or of something refused leads through; `.` is the directory itself."""
    unlisted: int = 0
    """Entries that are only counted (`UNLISTED_REASON`)."""
    cut: bool = False
    """Whether there was more than anybody looks at."""

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


def collect(directory: Path) -> Collected:
    """A directory that is not there holds nothing. Raises: OSError when it is something else."""
    collected = Collected()
    try:
        root = os.open(directory, _OPEN | os.O_DIRECTORY)
    except FileNotFoundError:
        return collected
    walk = _Walk(collected)
    walk.enter(root, "", 0)
    return collected


def hash_file(path: Path) -> OutputFile:
    """One file of the server's own. Raises: OSError, also when it is not a plain file."""
    handle = os.open(path, _OPEN)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(f"{path} is not a plain file")
        return _hashed(handle, path.name, facts.st_size)
    finally:
        os.close(handle)


def shown_name(name: bytes) -> str | None:
    """The name as text; None when it has none that JSON, a terminal and a person would all read alike."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() and "\\" not in text else None


def _escaped(name: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in name)


class _Walk:
    """Depth first, by descriptors: what is opened is what was looked at."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected
        self._entries = 0
        self._bytes = 0
        self._listed_bytes = 0

    def enter(self, directory: int, above: str, depth: int) -> None:
        try:
            names = self._names(directory)
            if names is None:
                self._list_empty(above.removesuffix("/") or ".")
            for name in names or ():
                self._entry(directory, name, above, depth)
        finally:
            os.close(directory)

    def _names(self, directory: int) -> list[bytes] | None:
        """Sorted, so that two walks agree; never more than the cap, however many there are. None when there is none."""
        names: list[bytes] = []
        empty = True
        with os.scandir(directory) as entries:
            for entry in entries:
                empty = False
                if self._entries >= MAX_ENTRIES:
                    self._collected.cut = True
                    break
                self._entries += 1
                names.append(os.fsencode(entry.name))
        return None if empty else sorted(names)

    def _entry(self, directory: int, name: bytes, above: str, depth: int) -> None:
        text = shown_name(name)
        path = f"{above}{_escaped(name) if text is None else text}"
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
            # ELOOP for a link, ENXIO for a socket, EACCES for what is not readable: none is looked into.
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
        elif facts.st_size > MAX_FILE_BYTES or self._bytes + facts.st_size > MAX_TOTAL_BYTES:
            self._refuse(path, "too large")
        elif self._has_room_for(path):
            self._bytes += facts.st_size
            self._collected.files.append(_hashed(handle, path, facts.st_size))

    def _refuse(self, path: str, reason: str) -> None:
        path = path[:MAX_PATH_BYTES]
        if self._has_room_for(path):
            self._collected.refused.append(RefusedEntry(path=path, reason=reason))

    def _list_empty(self, path: str) -> None:
        if self._has_room_for(path):
            self._collected.empty_directories.append(path)

    def _has_room_for(self, path: str) -> bool:
        """Asked once for every entry that would be listed; what has no room is counted."""
        needed = len(json.dumps(path))
        if self._listed_bytes + needed > MAX_LISTED_BYTES:
            self._collected.unlisted += 1
            return False
        self._listed_bytes += needed
        return True


def _hashed(handle: int, path: str, size: int) -> OutputFile:
    digest, left = hashlib.sha256(), size
    # No further than the size that was judged: a file that grows meanwhile does not match, and costs no more.
    while left > 0 and (chunk := os.read(handle, min(left, _CHUNK_BYTES))):
        digest.update(chunk)
        left -= len(chunk)
    return OutputFile(path=path, size=size - left, sha256=digest.hexdigest(), mime=mime_type(path))


def mime_type(path: str) -> str:
    """By its name. What is really inside is the job's business."""
    return _TYPES.guess_type(path.rpartition("/")[2])[0] or "application/octet-stream"
