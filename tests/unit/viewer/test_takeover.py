from __future__ import annotations

import pytest

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import RecordKind
from browser_shell.viewer.takeover import MAX_TAKEOVER_SECONDS, TAKEOVER_RETRY_SECONDS, Takeover
from support.fakes import FakeClock, FullDiskAudit, RecordingAudit


def a_takeover(clock: FakeClock, audit: RecordingAudit | None = None) -> Takeover:
    return Takeover(clock=clock, audit=audit or RecordingAudit(), idle_seconds=10)


async def test_open_socket_alone_gives_no_control() -> None:
    takeover = a_takeover(FakeClock())
    async with takeover.viewer_control(subject="alice", viewer_id="v1") as control:
        assert takeover.seconds_left() == 0
        assert not control.in_control


async def test_input_gives_control_until_the_idle_time_has_passed() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.viewer_control(subject="alice", viewer_id="v1") as control:
        await control.on_input()
        clock.advance(6)
        assert takeover.seconds_left() == 4
        await control.on_input()
        assert takeover.seconds_left() == 10
        clock.advance(9.9)
        assert takeover.seconds_left() > 0
        clock.advance(0.1)
        assert takeover.seconds_left() == 0


async def test_pointer_motion_extends_control_but_does_not_start_it() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.viewer_control(subject="alice", viewer_id="v1") as control:
        assert not control.on_motion()
        assert takeover.seconds_left() == 0
        await control.on_input()
        clock.advance(9)
        assert control.on_motion()
        assert takeover.seconds_left() == 10


async def test_takeover_lasts_until_it_is_handed_back() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.viewer_control(subject="alice", viewer_id="v1") as control:
        await control.take_over()
        clock.advance(600)
        assert takeover.seconds_left() == TAKEOVER_RETRY_SECONDS
        await control.on_input()
        await control.release("handed back")
        assert takeover.seconds_left() == 0


async def test_takeover_expires_without_a_hand_back() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.viewer_control(subject="alice", viewer_id="v1") as control:
        await control.take_over()
        clock.advance(MAX_TAKEOVER_SECONDS - 1)
        assert takeover.seconds_left() == 1
        clock.advance(1)
        assert takeover.seconds_left() == 0


async def test_control_ends_when_the_viewer_disconnects() -> None:
    audit = RecordingAudit()
    takeover = a_takeover(FakeClock(), audit)
    async with takeover.viewer_control(subject="alice", viewer_id="v1") as control:
        await control.take_over()
    assert takeover.seconds_left() == 0
    assert takeover._controls == []
    assert [(record.kind, record.subcommand) for record in audit.records] == [
        (RecordKind.TAKEOVER_BEGUN, "button"),
        (RecordKind.TAKEOVER_ENDED, "left"),
    ]


async def test_agents_wait_until_every_viewer_has_handed_back() -> None:
    takeover = a_takeover(FakeClock())
    async with (
        takeover.viewer_control(subject="alice", viewer_id="v1") as first,
        takeover.viewer_control(subject="bob", viewer_id="v2") as second,
    ):
        await first.take_over()
        await second.take_over()
        await first.release("handed back")
        assert takeover.seconds_left() > 0
        await second.release("handed back")
        assert takeover.seconds_left() == 0


async def test_each_control_period_has_one_start_and_one_end_record() -> None:
    clock, audit = FakeClock(), RecordingAudit()
    async with a_takeover(clock, audit).viewer_control(subject="alice", viewer_id="v1") as control:
        await control.on_input()
        await control.on_input()
        await control.record_end()
        clock.advance(10)
        await control.record_end()
        await control.record_end()
        await control.take_over()
        await control.release("handed back")
    assert [(record.kind, record.subcommand, record.duration_ms) for record in audit.records] == [
        (RecordKind.TAKEOVER_BEGUN, "input", None),
        (RecordKind.TAKEOVER_ENDED, "idle", 10_000),
        (RecordKind.TAKEOVER_BEGUN, "button", None),
        (RecordKind.TAKEOVER_ENDED, "handed back", 0),
    ]
    assert {(record.subject, record.call_id) for record in audit.records} == {("alice", "v1")}


@pytest.mark.promise("audit:no-record-no-run")
async def test_input_without_a_record_gives_no_control() -> None:
    takeover = a_takeover(FakeClock(), FullDiskAudit(full_at=RecordKind.TAKEOVER_BEGUN))
    async with takeover.viewer_control(subject="alice", viewer_id="v1") as control:
        with pytest.raises(AuditUnavailable):
            await control.on_input()
    assert takeover.seconds_left() == 0
