from __future__ import annotations

import pytest

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import RecordKind
from browser_shell.viewer.takeover import LONGEST_HOLD_SECONDS, WAIT_WHILE_HELD_SECONDS, Takeover
from support.fakes import FakeClock, FullDiskAudit, RecordingAudit


def a_takeover(clock: FakeClock, audit: RecordingAudit | None = None) -> Takeover:
    return Takeover(clock=clock, audit=audit or RecordingAudit(), idle_seconds=10)


async def test_nobody_is_in_control_at_first_nor_by_merely_watching() -> None:
    takeover = a_takeover(FakeClock())
    async with takeover.hand(subject="alice", viewer_id="v1") as hand:
        assert takeover.seconds_left() == 0
        assert not hand.in_control


async def test_a_key_gives_control_until_some_time_after_the_last_one() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.hand(subject="alice", viewer_id="v1") as hand:
        await hand.touch()
        clock.advance(6)
        assert takeover.seconds_left() == 4
        await hand.touch()
        assert takeover.seconds_left() == 10
        clock.advance(9.9)
        assert takeover.seconds_left() > 0
        clock.advance(0.1)
        assert takeover.seconds_left() == 0


async def test_moving_the_mouse_gives_no_control_but_keeps_it() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.hand(subject="alice", viewer_id="v1") as hand:
        assert not hand.move()
        assert takeover.seconds_left() == 0
        await hand.touch()
        clock.advance(9)
        assert hand.move()
        assert takeover.seconds_left() == 10


async def test_the_button_gives_control_until_it_is_handed_back() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.hand(subject="alice", viewer_id="v1") as hand:
        await hand.take_over()
        clock.advance(600)
        assert takeover.seconds_left() == WAIT_WHILE_HELD_SECONDS
        await hand.touch()
        await hand.hand_back()
        assert takeover.seconds_left() == 0


async def test_a_takeover_that_nobody_hands_back_ends_by_itself() -> None:
    clock = FakeClock()
    takeover = a_takeover(clock)
    async with takeover.hand(subject="alice", viewer_id="v1") as hand:
        await hand.take_over()
        clock.advance(LONGEST_HOLD_SECONDS - 1)
        assert takeover.seconds_left() == 1
        clock.advance(1)
        assert takeover.seconds_left() == 0


async def test_control_ends_when_the_viewer_goes() -> None:
    audit = RecordingAudit()
    takeover = a_takeover(FakeClock(), audit)
    async with takeover.hand(subject="alice", viewer_id="v1") as hand:
        await hand.take_over()
    assert takeover.seconds_left() == 0
    assert takeover._hands == []
    assert [(record.kind, record.subcommand) for record in audit.records] == [
        (RecordKind.TAKEOVER_BEGUN, "button"),
        (RecordKind.TAKEOVER_ENDED, "left"),
    ]


async def test_two_people_are_waited_for_until_both_are_done() -> None:
    takeover = a_takeover(FakeClock())
    async with (
        takeover.hand(subject="alice", viewer_id="v1") as first,
        takeover.hand(subject="bob", viewer_id="v2") as second,
    ):
        await first.take_over()
        await second.take_over()
        await first.hand_back()
        assert takeover.seconds_left() > 0
        await second.hand_back()
        assert takeover.seconds_left() == 0


async def test_each_control_is_recorded_once_with_how_it_began_and_ended() -> None:
    clock, audit = FakeClock(), RecordingAudit()
    async with a_takeover(clock, audit).hand(subject="alice", viewer_id="v1") as hand:
        await hand.touch()
        await hand.touch()
        await hand.settle()
        clock.advance(10)
        await hand.settle()
        await hand.settle()
        await hand.take_over()
        await hand.hand_back()
    assert [(record.kind, record.subcommand, record.duration_ms) for record in audit.records] == [
        (RecordKind.TAKEOVER_BEGUN, "input", None),
        (RecordKind.TAKEOVER_ENDED, "idle", 10_000),
        (RecordKind.TAKEOVER_BEGUN, "button", None),
        (RecordKind.TAKEOVER_ENDED, "handed back", 0),
    ]
    assert {(record.subject, record.call_id) for record in audit.records} == {("alice", "v1")}


@pytest.mark.promise("audit:no-record-no-run")
async def test_input_that_cannot_be_recorded_does_not_happen() -> None:
    takeover = a_takeover(FakeClock(), FullDiskAudit(full_at=RecordKind.TAKEOVER_BEGUN))
    async with takeover.hand(subject="alice", viewer_id="v1") as hand:
        with pytest.raises(AuditUnavailable):
            await hand.touch()
    assert takeover.seconds_left() == 0
