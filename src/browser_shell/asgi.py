"""Parts that the ASGI applications share: refusals, security headers and the disconnect signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import Message, Send

from browser_shell.http1.heads import write_final_response

DISCONNECT_SIGNAL = "disconnect_signal"
"""Key in `scope["state"]` under which the listener puts the signal of the connection."""
SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Defaults. An application may set its own value, as the viewer page does for its content security policy."""
_RESPONSE_STARTS = frozenset({"http.response.start", "websocket.http.response.start"})


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> PlainTextResponse:
    """Build a short plain-text response. On a WebSocket it replaces the handshake."""
    return PlainTextResponse(f"{reason}\n", status_code=status, headers=headers)


def raw_refusal(status: int, reason: str) -> bytes:
    """Serialise a refusal of a request that never reaches the ASGI application."""
    headers = {"Content-Type": "text/plain; charset=utf-8", **SECURITY_HEADERS}
    return write_final_response(status, HTTPStatus(status).phrase, headers, f"{reason}\n".encode())


def with_security_headers(send: Send, extra: Mapping[str, str]) -> Send:
    """Wrap `send` so that responses carry the security headers and `extra` where they set no value of their own."""
    defaults = [
        (name.lower().encode(), value.encode("latin-1")) for name, value in {**SECURITY_HEADERS, **extra}.items()
    ]

    async def send_with_headers(message: Message) -> None:
        if message["type"] in _RESPONSE_STARTS:
            present = {name.lower() for name, _ in message["headers"]}
            missing = [header for header in defaults if header[0] not in present]
            message = {**message, "headers": [*message["headers"], *missing]}
        await send(message)

    return send_with_headers


class DisconnectSignal:
    """Calls back when the client of a connection disconnects, without a task that waits for it.

    A connection serves one request at a time.
    """

    def __init__(self) -> None:
        self._callback: Callable[[], None] | None = None

    @contextmanager
    def on_disconnect(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` if the client disconnects while the block runs."""
        self._callback = callback
        try:
            yield
        finally:
            # The next request of the connection may have set its own callback already.
            if self._callback is callback:
                self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()


def disconnect_signal(scope: Mapping[str, Any]) -> DisconnectSignal | None:
    """Return the signal of the request's connection; None under a server that provides none."""
    signal: DisconnectSignal | None = scope.get("state", {}).get(DISCONNECT_SIGNAL)
    return signal
