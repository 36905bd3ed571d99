"""What the gateway mounts for people who watch: the page's files for everyone, the socket for a grant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from browser_shell.core.ports import AuditLog, Clock, NewId, SessionWindows
from browser_shell.viewer.activity import RecentActivity
from browser_shell.viewer.bridge import VncBridge
from browser_shell.viewer.page_files import PageFile, load_page_files
from browser_shell.viewer.takeover import Takeover

_MOUNT = "/vnc"
_INDEX = "index.html"

# noVNC decodes pictures through data: and blob: addresses. Scripts and styles come from files only.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    # The address may hold a ticket.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def vnc_app(
    *,
    novnc: Path,
    display_socket: Path,
    takeover: Takeover,
    activity: RecentActivity,
    windows: SessionWindows,
    audit: AuditLog,
    clock: Clock,
    new_id: NewId,
) -> ASGIApp:
    """The application for `/vnc`, `/vnc/…` and, as a websocket, wherever the gateway lets a grant through.

    Raises: ConfigurationInvalid when noVNC is not installed.
    """
    page_files = load_page_files(novnc)
    bridge = VncBridge(
        display_socket=display_socket,
        takeover=takeover,
        activity=activity,
        windows=windows,
        audit=audit,
        clock=clock,
        new_id=new_id,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await bridge(scope, receive, send)
        else:
            await _answer(scope, page_files)(scope, receive, send)

    return app


def _answer(scope: Scope, page_files: Mapping[str, PageFile]) -> Response:
    if scope["method"] not in ("GET", "HEAD"):
        return PlainTextResponse("Method Not Allowed\n", 405, {**_HEADERS, "Allow": "GET, HEAD"})
    path: str = scope["path"]
    if path == _MOUNT:
        # Relative, so that it also holds behind a proxy that adds a prefix. The query may carry the ticket.
        query = scope["query_string"].decode("latin-1")
        return RedirectResponse(f"vnc/?{query}" if query else "vnc/", 307, {**_HEADERS, "Cache-Control": "no-store"})
    name = path.removeprefix(f"{_MOUNT}/") or _INDEX
    found = page_files.get(name)
    if found is None:
        return PlainTextResponse("Not Found\n", 404, _HEADERS)
    headers = {**_HEADERS, "ETag": found.etag, "Cache-Control": _caching(name)}
    if Headers(scope=scope).get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)


def _caching(name: str) -> str:
    return "public, max-age=3600" if name.startswith("novnc/") else "no-cache"
