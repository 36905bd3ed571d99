"""Stands where the live view stands: one page, and a socket that shows what it was granted."""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket


async def stub_viewer(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        known = scope["path"] in ("/vnc", "/vnc/", "/vnc/index.html", "/vnc/core/rfb.js")
        await PlainTextResponse("page" if known else "Not Found", 200 if known else 404)(scope, receive, send)
        return
    socket = WebSocket(scope, receive, send)
    grant = scope["state"]["grant"]
    await socket.accept()
    await socket.send_text(f"{grant.subject} {grant.mode.value} {scope['query_string'].decode()}")
    async for _ in socket.iter_bytes():
        pass
