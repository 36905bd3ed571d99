"""Directories in which a running browser creates and removes files during a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def files_below(*folders: Path, without: str = "") -> Iterator[Path]:
    """Yield every file that still exists; skip directories with the name `without`."""
    for folder in folders:
        # Unlike rglob, os.walk ignores a directory that was removed after it was listed.
        for parent, subfolders, names in os.walk(folder):
            subfolders[:] = [name for name in subfolders if name != without]
            yield from (Path(parent) / name for name in names)


def content(path: Path) -> bytes:
    """Return the content; b"" for a path that was removed or is not a regular file."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def make_endless_folder(path: Path) -> None:
    """Create nested directories that exceed PATH_MAX and Python's recursion limit. `rm -rf` can remove them."""
    path.mkdir(parents=True)
    inner = os.open(path, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
