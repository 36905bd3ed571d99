"""The live view as one ASGI application: the page's files without credentials, the socket for a grant."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.viewer.bridge import VncBridge

_MOUNT = "/vnc"
_INDEX = "index.html"
_PAGE_FILES = ("index.html", "viewer.js", "connection.js", "lists.js", "viewer.css", "icon.svg")
_NOVNC_FOLDERS = ("core", "vendor")
_NOVNC_ENTRY = Path("core/rfb.js")
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

# noVNC decodes pictures through data: and blob: URLs. Scripts and styles come from files only.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
"""In addition to `asgi.SECURITY_HEADERS`, which the gateway adds."""


def build_viewer_app(*, novnc: Path, bridge: VncBridge) -> ASGIApp:
    """Build the application for `/vnc`, `/vnc/…` and the viewer's WebSocket.

    Raises: ConfigurationInvalid when noVNC is not installed.
    """
    page_files = load_page_files(novnc)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await bridge(scope, receive, send)
        else:
            await _page_response(scope, page_files)(scope, receive, send)

    return app


def _page_response(scope: Scope, page_files: Mapping[str, PageFile]) -> Response:
    if scope["method"] not in ("GET", "HEAD"):
        return PlainTextResponse("Method Not Allowed\n", 405, {**_HEADERS, "Allow": "GET, HEAD"})
    path: str = scope["path"]
    if path == _MOUNT:
        # Relative, so that it works behind a proxy that adds a prefix. The query may hold the ticket.
        query = scope["query_string"].decode("latin-1")
        return RedirectResponse(f"vnc/?{query}" if query else "vnc/", 307, {**_HEADERS, "Cache-Control": "no-store"})
    name = path.removeprefix(f"{_MOUNT}/") or _INDEX
    file = page_files.get(name)
    if file is None:
        return PlainTextResponse("Not Found\n", 404, _HEADERS)
    caching = "public, max-age=3600" if name.startswith("novnc/") else "no-cache"
    headers = {**_HEADERS, "ETag": file.etag, "Cache-Control": caching}
    if Headers(scope=scope).get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


@dataclass(frozen=True, slots=True)
class PageFile:
    content: bytes
    media_type: str
    etag: str


def load_page_files(novnc: Path) -> Mapping[str, PageFile]:
    """Read every file once, keyed by its path below `/vnc/`. No other path is ever opened.

    Raises: ConfigurationInvalid when noVNC is not installed.
    """
    if not (novnc / _NOVNC_ENTRY).is_file():
        raise ConfigurationInvalid(f"not installed: noVNC in {novnc}. Run: make install")
    return {name: _page_file(name, content) for name, content in (*_own_files(), *_novnc_files(novnc))}


def _own_files() -> Iterator[tuple[str, bytes]]:
    folder = files("browser_shell.viewer") / "page"
    for name in _PAGE_FILES:
        yield name, (folder / name).read_bytes()


def _novnc_files(novnc: Path) -> Iterator[tuple[str, bytes]]:
    for folder in _NOVNC_FOLDERS:
        for path in sorted((novnc / folder).rglob("*.js")):
            if path.is_file() and not path.is_symlink():
                yield f"novnc/{path.relative_to(novnc).as_posix()}", path.read_bytes()


def _page_file(name: str, content: bytes) -> PageFile:
    return PageFile(content, _MEDIA_TYPES[Path(name).suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
