"""Answers that the gateway gives by itself, and the headers that every answer carries."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import PlainTextResponse
from starlette.types import Message, Send

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Set unless the application set its own: a page needs another content policy, a static file may be cached."""
_RAW_SECURITY_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_STARTS = frozenset({"http.response.start", "websocket.http.response.start"})


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> PlainTextResponse:
    """A short answer in plain text; for a socket, instead of the handshake."""
    return PlainTextResponse(f"{reason}\n", status_code=status, headers=headers)


def guarded(send: Send, extra: Mapping[str, str]) -> Send:
    """Adds what every answer carries."""
    added = _RAW_SECURITY_HEADERS + [(name.lower().encode(), value.encode("latin-1")) for name, value in extra.items()]

    async def send_guarded(message: Message) -> None:
        if message["type"] in _STARTS:
            own = {name.lower() for name, _ in message["headers"]}
            headers = [*message["headers"], *(header for header in added if header[0] not in own)]
            message = {**message, "headers": headers}
        await send(message)

    return send_guarded


def raw_answer(status: int, reason: str) -> bytes:
    """For requests that were not good enough to become one."""
    body = f"{reason}\n".encode()
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **SECURITY_HEADERS,
    }
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
