"""What people see of sessions, and that nobody takes a session away from a person at work."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from browser_shell.browser import sessions as sessions_module
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.browser.session import Session
from browser_shell.browser.sessions import SessionLimits, Sessions
from browser_shell.browser.tabs import TabTracker
from support.fakes import FakeClock, FakePerson, RecordingAudit


@dataclass
class RecordingDevTools:
    posted: list[str] = field(default_factory=list)

    def post(self, method: str, params: dict[str, str]) -> None:
        assert method == "Target.activateTarget"
        self.posted.append(params["targetId"])


@dataclass
class FakeSupervisor:
    devtools: RecordingDevTools = field(default_factory=RecordingDevTools)

    def is_current(self, generation: int) -> bool:
        return generation == 1

    async def connection(self, *, seconds: float) -> FakeSupervisor:
        return self


class NoDriver:
    async def kill(self, name: str) -> None:
        return


@dataclass
class Box:
    sessions: Sessions
    devtools: RecordingDevTools
    clock: FakeClock
    person: FakePerson
    audit: RecordingAudit

    async def use(self, subject: str, session_id: str, *, seconds_later: float = 2) -> Session:
        """One call, as far as windows are concerned."""
        self.clock.advance(seconds_later)
        async with self.sessions.hold(subject, session_id) as session:
            session.context_id, session.active, session.generation = f"c-{session_id}", f"t-{session_id}", 1
            return session


@pytest.fixture
def box(tmp_path: Path) -> Box:
    clock, person, supervisor, audit = FakeClock(), FakePerson(), FakeSupervisor(), RecordingAudit()
    sessions = Sessions(
        supervisor=supervisor,  # type: ignore[arg-type]  # a stand-in for a class, not for a port
        tabs=TabTracker(),
        driver=NoDriver(),
        clock=clock,
        limits=SessionLimits(max_sessions=4, idle_seconds=10),
        directory=tmp_path,
        proxy_addresses=ProxyAddresses(port=1),
        account=None,
        human=person,
        audit=audit,
    )
    return Box(sessions, supervisor.devtools, clock, person, audit)


async def test_the_session_that_was_used_last_comes_to_the_front_once(box: Box) -> None:
    await box.use("alice", "a")
    await box.use("alice", "b")
    await box.sessions.show_latest()
    await box.sessions.show_latest()
    box.clock.advance(2)
    await box.sessions.show_latest()
    assert box.devtools.posted == ["t-b"]
    await box.use("alice", "a")
    await box.sessions.show_latest()
    assert box.devtools.posted == ["t-b", "t-a"]


async def test_people_can_follow_when_sessions_work_side_by_side(box: Box) -> None:
    await box.use("alice", "a")
    await box.sessions.show_latest()
    for _ in range(5):
        await box.use("alice", "b", seconds_later=0.05)
        await box.sessions.show_latest()
        await box.use("alice", "a", seconds_later=0.05)
        await box.sessions.show_latest()
    assert box.devtools.posted == ["t-a"]


async def test_what_a_person_chose_stays_until_somebody_acts_elsewhere(box: Box) -> None:
    await box.use("alice", "a")
    await box.use("alice", "b")
    box.clock.advance(2)
    await box.sessions.bring_to_front("alice", "a")
    box.clock.advance(5)
    await box.sessions.show_latest()
    assert box.devtools.posted == ["t-a"]


async def test_windows_do_not_move_under_a_persons_hands(box: Box) -> None:
    await box.use("alice", "a")
    box.person.seconds = 5
    await box.sessions.show_latest()
    assert box.devtools.posted == []


async def test_nobody_raises_or_sees_the_session_of_another_subject(box: Box) -> None:
    await box.use("bob", "a")
    await box.sessions.bring_to_front("alice", "a")
    assert box.devtools.posted == []
    assert box.sessions.windows("alice") == []
    assert [window.session_id for window in box.sessions.windows("bob")] == ["a"]
    assert box.sessions.count() == 1


async def test_sessions_do_not_expire_while_a_person_is_at_work(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "_SWEEP_SECONDS", 0.01)
    session = await box.use("alice", "a")
    session.context_id = ""  # There is no browser to clean up in.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(box.sessions.expire_idle)
        box.person.seconds = 5
        box.clock.advance(60)
        await anyio.sleep(0.1)
        assert not session.ended
        box.person.seconds = 0
        box.clock.advance(9)
        await anyio.sleep(0.1)
        assert not session.ended
        box.clock.advance(2)
        with anyio.fail_after(5):
            while not session.ended:  # noqa: ASYNC110  nothing announces it
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
