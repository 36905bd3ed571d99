"""Folders in which a running browser makes and removes files while a test looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def files_below(*folders: Path, without: str = "") -> Iterator[Path]:
    """Every file that is there when it is come to; none below a folder of the name `without`."""
    for folder in folders:
        # Unlike rglob, this passes over a folder that has gone since it was listed.
        for place, inner, names in os.walk(folder):
            inner[:] = [name for name in inner if name != without]
            yield from (Path(place) / name for name in names)


def content(path: Path) -> bytes:
    """Nothing for what has gone since it was listed, or is no file."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def make_endless_folder(path: Path) -> None:
    """Deeper than a path can name, and than Python goes by itself. `rm -rf` can remove it."""
    path.mkdir(parents=True)
    inner = os.open(path, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
