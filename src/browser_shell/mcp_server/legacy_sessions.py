"""How many sessions clients of the older era may have, and whose goes when one more is opened.

The SDK keeps the sessions, and ends those that nobody used for long. By itself it would refuse everybody when there are
many, whosever they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio
import structlog
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from browser_shell.asgi.request_headers import request_headers
from browser_shell.asgi.request_limits import MAX_REQUESTS_AT_ONCE
from browser_shell.core.ports import Clock
from browser_shell.mcp_server.json_rpc import error_answer

MAX_SESSIONS = 256
MAX_SESSIONS_OF_ONE = MAX_REQUESTS_AT_ONCE // 2
"""A client that listens has one request open all the time and needs another for its calls, so that a subject could not
use more of them at once. It takes eight subjects to have them all."""
QUIET_SECONDS = 60.0
"""Between two lines of the log that say the same."""

_ID = "mcp-session-id"
_END_SECONDS = 5.0
_UNAVAILABLE = -32603
"""Internal error, as the SDK says it: JSON-RPC has no nearer word."""

ServeAs: TypeAlias = Callable[[str, Scope, Receive, Send], Awaitable[None]]
"""Serves one request of a subject by the SDK's sessions."""

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class _Session:
    subject: str
    requests: int = 0
    """Under way; an open stream is one of them."""


class LegacySessions:
    """Stands before the SDK's sessions and sees each request come and go.

    What the SDK ended by itself is known here until somebody asks for it or it is the longest idle: the SDK never has
    more than are counted here.
    """

    def __init__(self, serve: ServeAs, *, clock: Clock) -> None:
        self._serve, self._clock = serve, clock
        self._open: dict[str | _Session, _Session] = {}
        """By id, or by itself as long as it has none. Of those without a request, the longest idle comes first."""
        self._refusals, self._told_at = 0, float("-inf")

    async def __call__(self, subject: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request of a session, or the handshake that opens one."""
        session_id = request_headers(scope).get(_ID)
        session = self._open.get(session_id) if session_id is not None else None
        if session_id is not None and session is not None and session.subject == subject:
            await self._go_on(session_id, session, scope, receive, send)
        elif session_id is None and scope["method"] == "POST":
            await self._begin(subject, scope, receive, send)
        else:
            await self._serve(subject, scope, receive, send)  # To be told that there is no such session.

    async def _go_on(self, session_id: str, session: _Session, scope: Scope, receive: Receive, send: Send) -> None:
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        session.requests += 1
        try:
            await self._serve(session.subject, scope, receive, watched)
        finally:
            gone = status == 404 or (scope["method"] == "DELETE" and status == 200)
            self._has_answered(session_id, session, gone=gone)

    async def _begin(self, subject: str, scope: Scope, receive: Receive, send: Send) -> None:
        crowd = self._crowd(subject)
        idle = next((name for name in crowd if isinstance(name, str) and not self._open[name].requests), None)
        if crowd and idle is None:
            self._tell_of_refusal(subject)
            answer = error_answer(_UNAVAILABLE, "Too many open sessions, and all of them are in use: end one first")
            await JSONResponse(answer, 503)(scope, receive, send)
            return
        session = _Session(subject, requests=1)
        known: str | _Session = session
        established = False

        async def watched(message: Message) -> None:
            nonlocal known
            if message["type"] == "http.response.start" and message["status"] < 400:
                # Before the client knows: its next request may come before the end of this one.
                del self._open[known]
                known = Headers(raw=message["headers"]).get(_ID, known)
                self._open[known] = session
            await send(message)

        # Nobody else may take this place, nor choose the same session to go, while that one is being ended.
        going = self._open.pop(idle) if idle is not None else None
        self._open[known] = session
        try:
            if idle is not None and going is not None:
                await self._end(idle, going.subject, scope)
            await self._serve(subject, scope, receive, watched)
            established = known is not session
        finally:
            # The SDK keeps no session whose handshake was refused, or broken off.
            self._has_answered(known, session, gone=not established)

    def _crowd(self, subject: str) -> list[str | _Session]:
        """Of whom one has to go before this subject opens another; nobody where there is room."""
        own = [known for known, session in self._open.items() if session.subject == subject]
        if len(own) >= MAX_SESSIONS_OF_ONE:
            return own
        return list(self._open) if len(self._open) >= MAX_SESSIONS else []

    def _has_answered(self, known: str | _Session, session: _Session, *, gone: bool) -> None:
        session.requests -= 1
        if self._open.get(known) is not session:
            return  # It has gone before, and the name may be another's.
        if gone:
            del self._open[known]
        elif not session.requests:
            self._open[known] = self._open.pop(known)

    async def _end(self, session_id: str, subject: str, scope: Scope) -> None:
        """As its owner would. The SDK has no other way in that is not its own business."""
        farewell = {
            "type": "http",
            "http_version": "1.1",
            "method": "DELETE",
            "path": scope["path"],
            "query_string": b"",
            "headers": [(_ID.encode(), session_id.encode())],
        }
        with anyio.move_on_after(_END_SECONDS, shield=True):
            await self._serve(subject, farewell, _says_nothing, _hears_nothing)

    def _tell_of_refusal(self, subject: str) -> None:
        self._refusals += 1
        now = self._clock.monotonic()
        if now - self._told_at >= QUIET_SECONDS:
            log.warning("mcp_sessions_refused", subject=subject, refusals=self._refusals)
            self._refusals, self._told_at = 0, now


async def _says_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _hears_nothing(message: Message) -> None:
    """Nobody asked, so nobody is answered."""
