"""The files of the page, read once: what is not in the table does not exist, whatever the path says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_OWN = ("index.html", "viewer.js", "connection.js", "lists.js", "viewer.css", "icon.svg")
_NOVNC_FOLDERS = ("core", "vendor")
_NOVNC_ENTRY = Path("core/rfb.js")


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file, ready to be sent."""

    content: bytes
    media_type: str
    etag: str


def load_page_files(novnc: Path) -> Mapping[str, PageFile]:
    """Every file by its path below `/vnc/`. Raises: ConfigurationInvalid when noVNC is not installed."""
    if not (novnc / _NOVNC_ENTRY).is_file():
        raise ConfigurationInvalid(f"not installed: noVNC in {novnc}. Run: make install")
    return {name: _page_file(name, content) for name, content in (*_own_files(), *_novnc_files(novnc))}


def _own_files() -> Iterator[tuple[str, bytes]]:
    folder = files("browser_shell.viewer") / "page"
    for name in _OWN:
        yield name, (folder / name).read_bytes()


def _novnc_files(novnc: Path) -> Iterator[tuple[str, bytes]]:
    for folder in _NOVNC_FOLDERS:
        for path in sorted((novnc / folder).rglob("*.js")):
            if path.is_file() and not path.is_symlink():
                yield f"novnc/{path.relative_to(novnc).as_posix()}", path.read_bytes()


def _page_file(name: str, content: bytes) -> PageFile:
    return PageFile(content, _TYPES[Path(name).suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
