"""The log knows which sessions were open, and why each of them ended."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from browser_shell.browser import sessions as sessions_module
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.browser.sessions import SessionLimits, Sessions
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.ports import AuditLog
from browser_shell.core.records import RecordKind
from support.fakes import FakeClock, FakePerson, FullDiskAudit, RecordingAudit


class NoBrowser:
    def is_current(self, generation: int) -> bool:
        return False


class NoDriver:
    async def kill(self, name: str) -> None:
        return


def some_sessions(directory: Path, audit: AuditLog, clock: FakeClock) -> Sessions:
    return Sessions(
        supervisor=NoBrowser(),  # type: ignore[arg-type]  # a stand-in for a class, not for a port
        tabs=TabTracker(),
        driver=NoDriver(),
        clock=clock,
        limits=SessionLimits(max_sessions=4, idle_seconds=10),
        directory=directory,
        proxy_addresses=ProxyAddresses(port=1),
        account=None,
        human=FakePerson(),
        audit=audit,
    )


async def test_a_session_is_recorded_once_when_it_opens_and_once_when_it_ends(tmp_path: Path) -> None:
    audit, clock = RecordingAudit(), FakeClock()
    sessions = some_sessions(tmp_path, audit, clock)
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


async def test_the_record_says_that_a_session_was_idle_or_the_server_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "_SWEEP_SECONDS", 0.01)
    audit, clock = RecordingAudit(), FakeClock()
    sessions = some_sessions(tmp_path, audit, clock)
    async with sessions.hold("ann", "idle"):
        pass
    clock.advance(11)
    async with sessions.hold("ann", "used"):
        pass
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sessions.expire_idle)
        with anyio.fail_after(5):
            while audit.kinds.count("SESSION_CLOSED") < 1:  # noqa: ASYNC110  the sweep tells nobody
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    await sessions.close_all()
    ends = [(record.session_id, record.rule_id) for record in audit.records if record.kind is RecordKind.SESSION_CLOSED]
    assert ends == [("idle", "sessions.idle_seconds"), ("used", "server.stopping")]


async def test_a_session_that_cannot_be_recorded_is_not_used(tmp_path: Path) -> None:
    sessions = some_sessions(tmp_path, FullDiskAudit(full_at=RecordKind.SESSION_OPENED), FakeClock())
    used = False
    with pytest.raises(AuditUnavailable):
        async with sessions.hold("ann", "s1"):
            used = True
    assert not used


async def test_a_session_ends_although_that_cannot_be_recorded(tmp_path: Path) -> None:
    sessions = some_sessions(tmp_path, FullDiskAudit(full_at=RecordKind.SESSION_CLOSED), FakeClock())
    async with sessions.hold("ann", "s1"):
        pass
    assert await sessions.close("ann", "s1")
    assert not await sessions.close("ann", "s1")
