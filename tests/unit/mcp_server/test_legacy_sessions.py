"""Limits for legacy sessions, and which session is evicted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import structlog
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from browser_shell.mcp_server.legacy_sessions import (
    LOG_INTERVAL_SECONDS,
    MAX_SESSIONS,
    MAX_SESSIONS_PER_SUBJECT,
    LegacySessions,
)
from support.fakes import FakeClock


@dataclass
class FakeSessionManager:
    """Keeps sessions like the SDK. A request with the header `wait` lasts until it is cancelled."""

    owners: dict[str, str] = field(default_factory=dict)
    opened: int = 0
    most: int = 0

    async def serve(self, subject: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        session_id = headers.get(b"mcp-session-id", b"").decode()
        if not session_id and b"bad" in headers:
            await Response(status_code=406)(scope, receive, send)
            return
        if not session_id:
            self.opened += 1
            session_id = str(self.opened)
            self.owners[session_id] = subject
            self.most = max(self.most, len(self.owners))
        elif self.owners.get(session_id) != subject:
            await Response(status_code=404)(scope, receive, send)
            return
        elif scope["method"] == "DELETE":
            await anyio.lowlevel.checkpoint()
            del self.owners[session_id]
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", session_id.encode())]}
        )
        if b"wait" in headers:
            try:
                await anyio.sleep_forever()
            finally:
                if b"mcp-session-id" not in headers:
                    del self.owners[session_id]
        await send({"type": "http.response.body", "body": b""})


@dataclass
class Bench:
    clock: FakeClock = field(default_factory=FakeClock)
    manager: FakeSessionManager = field(default_factory=FakeSessionManager)

    def __post_init__(self) -> None:
        self.sessions = LegacySessions(self.manager.serve, clock=self.clock)

    async def request(self, subject: str, method: str, session_id: str = "", *more: bytes) -> tuple[int, str]:
        """Return the status and the session id."""
        responses: list[Message] = []

        async def send(message: Message) -> None:
            responses.append(message)

        await self.sessions(subject, a_scope(method, session_id, *more), receive, send)
        return responses[0]["status"], dict(responses[0]["headers"]).get(b"mcp-session-id", b"").decode()

    async def open(self, subject: str, count: int = 1) -> list[str]:
        opened = [await self.request(subject, "POST") for _ in range(count)]
        assert {status for status, _ in opened} == {200}
        return [session_id for _, session_id in opened]

    @asynccontextmanager
    async def streams(self, subject: str, *session_ids: str) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            for session_id in session_ids:
                tasks.start_soon(self.request, subject, "GET", session_id, b"wait")
            await anyio.wait_all_tasks_blocked()
            yield
            tasks.cancel_scope.cancel()


def a_scope(method: str, session_id: str, *more: bytes) -> Scope:
    named = [(b"mcp-session-id", session_id.encode())] if session_id else []
    return {"type": "http", "method": method, "path": "/mcp", "headers": named + [(name, b"1") for name in more]}


async def receive() -> Message:
    return {"type": "http.request", "body": b""}


async def test_subject_at_its_limit_loses_its_longest_idle_session() -> None:
    bench = Bench()
    (other,) = await bench.open("bob")
    own = await bench.open("ann", MAX_SESSIONS_PER_SUBJECT)
    await bench.request("ann", "POST", own[0])
    (newest,) = await bench.open("ann")
    assert set(bench.manager.owners) == {other, own[0], *own[2:], newest}
    assert bench.manager.most == 1 + MAX_SESSIONS_PER_SUBJECT


async def test_session_is_refused_only_when_all_sessions_of_the_subject_are_in_use() -> None:
    bench = Bench()
    own = await bench.open("ann", MAX_SESSIONS_PER_SUBJECT)
    async with bench.streams("ann", *own[:-1]):
        (newest,) = await bench.open("ann")
        assert set(bench.manager.owners) == {*own[:-1], newest}
        async with bench.streams("ann", newest):
            assert (await bench.request("ann", "POST"))[0] == 503
            await bench.open("bob")
    await bench.open("ann")
    assert len(bench.manager.owners) == MAX_SESSIONS_PER_SUBJECT + 1


async def test_at_the_total_limit_the_longest_idle_session_is_evicted() -> None:
    bench = Bench()
    for number in range(MAX_SESSIONS // MAX_SESSIONS_PER_SUBJECT):
        await bench.open(f"subject-{number}", MAX_SESSIONS_PER_SUBJECT)
    assert len(bench.manager.owners) == MAX_SESSIONS
    await bench.request("subject-0", "POST", "1")
    (newest,) = await bench.open("another")
    assert "1" in bench.manager.owners
    assert "2" not in bench.manager.owners
    assert newest in bench.manager.owners
    assert bench.manager.most == MAX_SESSIONS


async def test_concurrent_handshakes_evict_different_sessions() -> None:
    bench = Bench()
    await bench.open("ann", MAX_SESSIONS_PER_SUBJECT)
    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_SESSIONS_PER_SUBJECT):
            tasks.start_soon(bench.request, "ann", "POST")
    assert len(bench.manager.owners) == bench.manager.most == MAX_SESSIONS_PER_SUBJECT


async def test_ended_sessions_are_not_counted() -> None:
    bench = Bench()
    ended, kept, lost, *_ = await bench.open("ann", MAX_SESSIONS_PER_SUBJECT)
    assert (await bench.request("ann", "DELETE", ended))[0] == 200
    await bench.open("ann")
    assert kept in bench.manager.owners
    del bench.manager.owners[lost]  # As the SDK does after half an hour without a request.
    assert (await bench.request("ann", "POST", lost))[0] == 404
    await bench.open("ann")
    assert kept in bench.manager.owners


async def test_refused_or_cancelled_handshake_is_not_counted() -> None:
    bench = Bench()
    own = await bench.open("ann", MAX_SESSIONS_PER_SUBJECT - 1)
    for _ in range(3):
        assert (await bench.request("ann", "POST", "", b"bad"))[0] == 406
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.request, "ann", "POST", "", b"wait")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    (newest,) = await bench.open("ann")
    assert set(bench.manager.owners) == {*own, newest}


async def test_request_of_another_subject_neither_uses_nor_ends_a_session() -> None:
    bench = Bench()
    (first, *_) = await bench.open("ann", MAX_SESSIONS_PER_SUBJECT)
    for method in ("POST", "GET", "DELETE"):
        assert (await bench.request("bob", method, first))[0] == 404
    await bench.open("ann")
    assert first not in bench.manager.owners


async def test_refusals_are_logged_once_a_minute() -> None:
    bench = Bench()
    own = await bench.open("ann", MAX_SESSIONS_PER_SUBJECT)
    async with bench.streams("ann", *own):
        with structlog.testing.capture_logs() as lines:
            for _ in range(100):
                assert (await bench.request("ann", "POST"))[0] == 503
            bench.clock.advance(LOG_INTERVAL_SECONDS)
            await bench.request("ann", "POST")
    assert [line["refusals"] for line in lines] == [1, 100]
