"""Limits for the MCP sessions of legacy clients, and eviction of idle ones.

The SDK keeps the sessions and ends idle ones after half an hour. Its own limit would refuse every subject when one
subject opens many sessions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio
import structlog
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from browser_shell.core.ports import Clock
from browser_shell.mcp_server.json_rpc import error_response

MAX_SESSIONS = 256
MAX_SESSIONS_PER_SUBJECT = 32
"""Half of the concurrent requests of a subject (`http/request_limits.py`): a listening client holds one request open
and needs another for its calls. Eight subjects are needed to fill all places."""
LOG_INTERVAL_SECONDS = 60.0
"""Between two log events about refused sessions."""

_SESSION_ID = "mcp-session-id"
_DELETE_SECONDS = 5.0
_INTERNAL_ERROR = -32603
"""The SDK uses the same code when its session limit is reached."""

ServeAs: TypeAlias = Callable[[str, Scope, Receive, Send], Awaitable[None]]
"""Serves one request of a subject with the SDK's session manager."""

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class _Session:
    subject: str
    id: str | None = None
    """None until the SDK has assigned it."""
    requests: int = 0
    """Open requests, event streams included."""


class LegacySessions:
    """Counts sessions in front of the SDK's session manager.

    A session that the SDK ended is counted until its next request fails or it is evicted. The SDK therefore never has
    more sessions than are counted here.
    """

    def __init__(self, serve: ServeAs, *, clock: Clock) -> None:
        self._serve, self._clock = serve, clock
        self._open: list[_Session] = []
        """Sessions without open requests are in order of their last use."""
        self._refusals, self._logged_at = 0, float("-inf")

    async def __call__(self, subject: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of a session, or the `initialize` request that opens one."""
        session_id = Headers(scope=scope).get(_SESSION_ID)
        if session_id is None and scope["method"] == "POST":
            await self._initialize(subject, scope, receive, send)
            return
        session = next((session for session in self._open if session.id == session_id), None)
        if session_id is not None and session is not None and session.subject == subject:
            await self._continue(session, scope, receive, send)
        else:
            await self._serve(subject, scope, receive, send)  # The SDK answers that there is no such session.

    async def _continue(self, session: _Session, scope: Scope, receive: Receive, send: Send) -> None:
        status = 0

        async def send_and_watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        session.requests += 1
        try:
            await self._serve(session.subject, scope, receive, send_and_watch)
        finally:
            has_ended = status == 404 or (scope["method"] == "DELETE" and status == 200)
            self._finish_request(session, has_ended=has_ended)

    async def _initialize(self, subject: str, scope: Scope, receive: Receive, send: Send) -> None:
        candidates = self._eviction_candidates(subject)
        evicted = next((session for session in candidates if session.id and not session.requests), None)
        if candidates and evicted is None:
            self._log_refusal(subject)
            message = "Too many open sessions, and all of them are in use: end one first"
            await error_response(503, _INTERNAL_ERROR, message)(scope, receive, send)
            return
        session = _Session(subject, requests=1)
        is_established = False

        async def send_and_watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                # Before the client receives the id: its next request may arrive before this one ends.
                session.id = Headers(raw=message["headers"]).get(_SESSION_ID)
            await send(message)

        # Both changes before the first await: no other request may use this place or evict the same session.
        if evicted is not None:
            self._open.remove(evicted)
        self._open.append(session)
        try:
            if evicted is not None:
                await self._delete(evicted, scope)
            await self._serve(subject, scope, receive, send_and_watch)
            is_established = session.id is not None
        finally:
            # The SDK keeps no session whose `initialize` request was refused or cancelled.
            self._finish_request(session, has_ended=not is_established)

    def _eviction_candidates(self, subject: str) -> list[_Session]:
        """Return the sessions of which one must end before this subject opens another; empty below the limits."""
        own = [session for session in self._open if session.subject == subject]
        if len(own) >= MAX_SESSIONS_PER_SUBJECT:
            return own
        return self._open if len(self._open) >= MAX_SESSIONS else []

    def _finish_request(self, session: _Session, *, has_ended: bool) -> None:
        session.requests -= 1
        if session not in self._open:
            return  # Evicted, or ended by another request.
        if has_ended or not session.requests:
            self._open.remove(session)
        if not has_ended and not session.requests:
            self._open.append(session)

    async def _delete(self, session: _Session, scope: Scope) -> None:
        """End a session by a DELETE request of its owner. The SDK has no public method for it."""
        request = {
            "type": "http",
            "http_version": "1.1",
            "method": "DELETE",
            "path": scope["path"],
            "query_string": b"",
            "headers": [(_SESSION_ID.encode(), (session.id or "").encode())],
        }
        with anyio.move_on_after(_DELETE_SECONDS, shield=True):
            await self._serve(session.subject, request, _receive_empty_body, _discard_response)

    def _log_refusal(self, subject: str) -> None:
        self._refusals += 1
        now = self._clock.monotonic()
        if now - self._logged_at >= LOG_INTERVAL_SECONDS:
            log.warning("mcp_sessions_refused", subject=subject, refusals=self._refusals)
            self._refusals, self._logged_at = 0, now


async def _receive_empty_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard_response(message: Message) -> None:
    """Ignore the response to the DELETE request."""
