"""Whose session of the older era goes when one more is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import structlog
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from browser_shell.mcp_server.legacy_sessions import MAX_SESSIONS, MAX_SESSIONS_OF_ONE, QUIET_SECONDS, LegacySessions
from support.fakes import FakeClock


@dataclass
class Keeper:
    """Keeps sessions as the SDK does. A request with `wait` among its headers lasts until it is cancelled."""

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
    keeper: Keeper = field(default_factory=Keeper)

    def __post_init__(self) -> None:
        self.sessions = LegacySessions(self.keeper.serve, clock=self.clock)

    async def ask(self, subject: str, method: str, session_id: str = "", *more: bytes) -> tuple[int, str]:
        """The status and the session's id."""
        answers: list[Message] = []

        async def send(message: Message) -> None:
            answers.append(message)

        await self.sessions(subject, a_scope(method, session_id, *more), nothing, send)
        return answers[0]["status"], dict(answers[0]["headers"]).get(b"mcp-session-id", b"").decode()

    async def open(self, subject: str, count: int = 1) -> list[str]:
        opened = [await self.ask(subject, "POST") for _ in range(count)]
        assert {status for status, _ in opened} == {200}
        return [session_id for _, session_id in opened]

    @asynccontextmanager
    async def streams(self, subject: str, *session_ids: str) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            for session_id in session_ids:
                tasks.start_soon(self.ask, subject, "GET", session_id, b"wait")
            await anyio.wait_all_tasks_blocked()
            yield
            tasks.cancel_scope.cancel()


def a_scope(method: str, session_id: str, *more: bytes) -> Scope:
    named = [(b"mcp-session-id", session_id.encode())] if session_id else []
    return {"type": "http", "method": method, "path": "/mcp", "headers": named + [(name, b"1") for name in more]}


async def nothing() -> Message:
    return {"type": "http.request", "body": b""}


async def test_at_its_limit_a_subject_loses_the_session_that_was_idle_for_longest() -> None:
    bench = Bench()
    (other,) = await bench.open("bob")
    own = await bench.open("ann", MAX_SESSIONS_OF_ONE)
    await bench.ask("ann", "POST", own[0])
    (newest,) = await bench.open("ann")
    assert set(bench.keeper.owners) == {other, own[0], *own[2:], newest}
    assert bench.keeper.most == 1 + MAX_SESSIONS_OF_ONE


async def test_what_is_in_use_stays_and_only_then_is_a_handshake_refused() -> None:
    bench = Bench()
    own = await bench.open("ann", MAX_SESSIONS_OF_ONE)
    async with bench.streams("ann", *own[:-1]):
        (newest,) = await bench.open("ann")
        assert set(bench.keeper.owners) == {*own[:-1], newest}
        async with bench.streams("ann", newest):
            assert (await bench.ask("ann", "POST"))[0] == 503
            await bench.open("bob")
    await bench.open("ann")
    assert len(bench.keeper.owners) == MAX_SESSIONS_OF_ONE + 1


async def test_when_all_places_are_taken_the_longest_idle_of_all_goes() -> None:
    bench = Bench()
    for number in range(MAX_SESSIONS // MAX_SESSIONS_OF_ONE):
        await bench.open(f"subject-{number}", MAX_SESSIONS_OF_ONE)
    assert len(bench.keeper.owners) == MAX_SESSIONS
    await bench.ask("subject-0", "POST", "1")
    (newest,) = await bench.open("another")
    assert "1" in bench.keeper.owners
    assert "2" not in bench.keeper.owners
    assert newest in bench.keeper.owners
    assert bench.keeper.most == MAX_SESSIONS


async def test_handshakes_at_one_time_each_have_a_place_of_their_own() -> None:
    bench = Bench()
    await bench.open("ann", MAX_SESSIONS_OF_ONE)
    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_SESSIONS_OF_ONE):
            tasks.start_soon(bench.ask, "ann", "POST")
    assert len(bench.keeper.owners) == bench.keeper.most == MAX_SESSIONS_OF_ONE


async def test_sessions_that_ended_take_no_place() -> None:
    bench = Bench()
    ended, kept, lost, *_ = await bench.open("ann", MAX_SESSIONS_OF_ONE)
    assert (await bench.ask("ann", "DELETE", ended))[0] == 200
    await bench.open("ann")
    assert kept in bench.keeper.owners
    del bench.keeper.owners[lost]  # As the SDK does with one that was idle for half an hour.
    assert (await bench.ask("ann", "POST", lost))[0] == 404
    await bench.open("ann")
    assert kept in bench.keeper.owners


async def test_a_handshake_that_is_refused_or_broken_off_takes_no_place() -> None:
    bench = Bench()
    own = await bench.open("ann", MAX_SESSIONS_OF_ONE - 1)
    for _ in range(3):
        assert (await bench.ask("ann", "POST", "", b"bad"))[0] == 406
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.ask, "ann", "POST", "", b"wait")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    (newest,) = await bench.open("ann")
    assert set(bench.keeper.owners) == {*own, newest}


async def test_nobody_keeps_or_ends_the_session_of_another() -> None:
    bench = Bench()
    (first, *_) = await bench.open("ann", MAX_SESSIONS_OF_ONE)
    for method in ("POST", "GET", "DELETE"):
        assert (await bench.ask("bob", method, first))[0] == 404
    await bench.open("ann")
    assert first not in bench.keeper.owners


async def test_the_log_tells_of_refusals_once_a_minute() -> None:
    bench = Bench()
    own = await bench.open("ann", MAX_SESSIONS_OF_ONE)
    async with bench.streams("ann", *own):
        with structlog.testing.capture_logs() as lines:
            for _ in range(100):
                assert (await bench.ask("ann", "POST"))[0] == 503
            bench.clock.advance(QUIET_SECONDS)
            await bench.ask("ann", "POST")
    assert [line["refusals"] for line in lines] == [1, 100]
