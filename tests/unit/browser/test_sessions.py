"""Sessions: their audit records, the windows that viewers see, and idle expiry."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import anyio
import pytest

from browser_shell.browser import sessions as sessions_module
from browser_shell.browser.chromium.supervisor import BrowserSupervisor
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.browser.session import Session
from browser_shell.browser.sessions import Sessions
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.errors import AuditUnavailable, ErrorCode, TryLater
from browser_shell.core.ports import AuditLog
from browser_shell.core.records import RecordKind
from browser_shell.policy.document import OutputSection, SessionsSection
from support.fakes import FakeClock, FakePerson, FullDiskAudit, RecordingAudit
from support.layouts import flat_layout


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

    async def open_connection(self) -> None:
        raise AssertionError("these tests open no page")


class NoDriver:
    async def kill(self, name: str) -> None:
        return


def make_sessions(directory: Path, audit: AuditLog, clock: FakeClock, **parts: object) -> Sessions:
    return Sessions(
        supervisor=cast(BrowserSupervisor, parts.get("supervisor", FakeSupervisor())),
        tabs=TabTracker(),
        driver=cast(AgentBrowserDriver, NoDriver()),
        clock=clock,
        limits=SessionsSection(max=4, idle_seconds=10),
        output=OutputSection(),
        layout=flat_layout(directory),
        proxy_addresses=ProxyAddresses(port=1),
        human=cast(FakePerson, parts.get("human", FakePerson())),
        audit=audit,
    )


@dataclass
class Box:
    sessions: Sessions
    devtools: RecordingDevTools
    clock: FakeClock
    person: FakePerson
    audit: RecordingAudit

    async def use(self, subject: str, session_id: str, *, seconds_later: float = 2) -> Session:
        """Do what a call does to the list of windows."""
        self.clock.advance(seconds_later)
        async with self.sessions.hold(subject, session_id) as session:
            session.context_id, session.active_target_id, session.generation = f"c-{session_id}", f"t-{session_id}", 1
            return session


@pytest.fixture
def box(tmp_path: Path) -> Box:
    clock, person, supervisor, audit = FakeClock(), FakePerson(), FakeSupervisor(), RecordingAudit()
    sessions = make_sessions(tmp_path, audit, clock, supervisor=supervisor, human=person)
    return Box(sessions, supervisor.devtools, clock, person, audit)


async def hold(sessions: Sessions, *keys: tuple[str, str]) -> None:
    for subject, session_id in keys:
        async with sessions.hold(subject, session_id):
            pass


@pytest.mark.promise("sessions:places-for-everyone")
async def test_a_subject_with_half_of_the_places_gets_no_more_and_others_do(tmp_path: Path) -> None:
    sessions = make_sessions(tmp_path, RecordingAudit(), FakeClock())
    await hold(sessions, ("alice", "b"), ("alice", "a"))
    with pytest.raises(TryLater) as refused:
        await hold(sessions, ("alice", "c"))
    assert (refused.value.rule_id, refused.value.code) == ("sessions.max_per_subject", ErrorCode.SESSION_LIMIT)
    assert "yours are: a, b" in refused.value.public_message
    await hold(sessions, ("alice", "a"), ("bob", "a"))
    await sessions.close("alice", "a")
    await hold(sessions, ("alice", "c"))


async def test_a_full_server_names_only_sessions_of_the_caller(tmp_path: Path) -> None:
    sessions = make_sessions(tmp_path, RecordingAudit(), FakeClock())
    await hold(sessions, ("alice", "alice-1"), ("alice", "alice-2"), ("bob", "bob-1"), ("bob", "bob-2"))
    with pytest.raises(TryLater) as refused:
        await hold(sessions, ("carol", "c"))
    assert refused.value.rule_id == "sessions.max"
    assert "alice" not in refused.value.public_message


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


async def test_the_front_window_does_not_change_with_every_call(box: Box) -> None:
    await box.use("alice", "a")
    await box.sessions.show_latest()
    for _ in range(5):
        await box.use("alice", "b", seconds_later=0.05)
        await box.sessions.show_latest()
        await box.use("alice", "a", seconds_later=0.05)
        await box.sessions.show_latest()
    assert box.devtools.posted == ["t-a"]


async def test_a_window_that_a_viewer_chose_stays_until_another_session_is_used(box: Box) -> None:
    await box.use("alice", "a")
    await box.use("alice", "b")
    box.clock.advance(2)
    await box.sessions.bring_to_front("alice", "a")
    box.clock.advance(5)
    await box.sessions.show_latest()
    assert box.devtools.posted == ["t-a"]


async def test_no_window_is_raised_during_a_takeover(box: Box) -> None:
    await box.use("alice", "a")
    box.person.seconds = 5
    await box.sessions.show_latest()
    assert box.devtools.posted == []


async def test_a_subject_can_neither_raise_nor_list_windows_of_another_subject(box: Box) -> None:
    await box.use("bob", "a")
    await box.sessions.bring_to_front("alice", "a")
    assert box.devtools.posted == []
    assert box.sessions.windows("alice") == []
    assert [window.session_id for window in box.sessions.windows("bob")] == ["a"]
    assert box.sessions.count() == 1


async def test_sessions_do_not_expire_during_a_takeover(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "_SWEEP_SECONDS", 0.01)
    session = await box.use("alice", "a")
    session.context_id = ""  # Without a context there is nothing to dispose of.
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
            while not session.ended:  # noqa: ASYNC110  the end sends no event
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def test_a_session_is_recorded_once_when_it_opens_and_once_when_it_ends(tmp_path: Path) -> None:
    audit, clock = RecordingAudit(), FakeClock()
    sessions = make_sessions(tmp_path, audit, clock)
    for _ in range(3):
        async with sessions.hold("ann", "s1"):
            clock.advance(2)
    await sessions.close("ann", "s1")
    await sessions.close("ann", "s1")
    assert audit.kinds == ["SESSION_OPENED", "SESSION_CLOSED"]
    assert [(record.subject, record.session_id, record.rule_id) for record in audit.records] == [("ann", "s1", "")] * 2
    assert audit.records[1].duration_ms == 6000
    async with sessions.hold("ann", "s1"):
        pass
    assert audit.kinds == ["SESSION_OPENED", "SESSION_CLOSED", "SESSION_OPENED"]


async def test_the_closing_record_names_idle_expiry_or_server_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "_SWEEP_SECONDS", 0.01)
    audit, clock = RecordingAudit(), FakeClock()
    sessions = make_sessions(tmp_path, audit, clock)
    async with sessions.hold("ann", "idle"):
        pass
    clock.advance(11)
    async with sessions.hold("ann", "used"):
        pass
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sessions.expire_idle)
        with anyio.fail_after(5):
            while audit.kinds.count("SESSION_CLOSED") < 1:  # noqa: ASYNC110  the sweep sends no event
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    await sessions.close_all()
    ends = [(record.session_id, record.rule_id) for record in audit.records if record.kind is RecordKind.SESSION_CLOSED]
    assert ends == [("idle", "sessions.idle_seconds"), ("used", "server.stopping")]


async def test_a_session_that_cannot_be_recorded_is_not_used(tmp_path: Path) -> None:
    sessions = make_sessions(tmp_path, FullDiskAudit(full_at=RecordKind.SESSION_OPENED), FakeClock())
    used = False
    with pytest.raises(AuditUnavailable):
        async with sessions.hold("ann", "s1"):
            used = True
    assert not used


async def test_a_session_ends_even_if_its_end_cannot_be_recorded(tmp_path: Path) -> None:
    sessions = make_sessions(tmp_path, FullDiskAudit(full_at=RecordKind.SESSION_CLOSED), FakeClock())
    async with sessions.hold("ann", "s1"):
        pass
    assert await sessions.close("ann", "s1")
    assert not await sessions.close("ann", "s1")
