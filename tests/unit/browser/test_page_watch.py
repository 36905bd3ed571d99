"""A wait for the driver ends when a dialog stays open or the active tab closes. Timers are fired by the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import anyio
import anyio.lowlevel
import pytest

from browser_shell.browser.dialogs import Dialog
from browser_shell.browser.page_watch import DIALOG_GRACE_SECONDS, GONE_GRACE_SECONDS, PageWatch
from browser_shell.browser.session import Session

CONFIRM = Dialog(kind="confirm", message="sure?")
PROMPT = Dialog(kind="prompt", message="name?")


class FakeTimer(asyncio.TimerHandle):
    """A timer that the event loop never fires."""

    def __init__(self, seconds: float, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
        super().__init__(seconds, function, arguments, asyncio.get_running_loop())
        self.seconds = seconds
        self.call = partial(function, *arguments)


@dataclass
class FakeTimers:
    pending: list[FakeTimer] = field(default_factory=list)

    def call_later(self, seconds: float, function: Callable[..., None], *arguments: object) -> FakeTimer:
        timer = FakeTimer(seconds, function, arguments)
        self.pending.append(timer)
        return timer

    def fire(self) -> None:
        """Fire every timer that is set now."""
        timers, self.pending = self.pending, []
        for timer in timers:
            if not timer.cancelled():
                timer.call()


class FakeSession:
    """The part of a session that `PageWatch` uses."""

    def __init__(self, *, dialog: Dialog | None = None, has_active_tab: bool = True) -> None:
        self.open_dialog, self.active_tab_is_open = dialog, has_active_tab
        self.on_change: Callable[[], None] | None = None

    def dialog(self) -> Dialog | None:
        return self.open_dialog

    def has_active_tab(self) -> bool:
        return self.active_tab_is_open

    def watch_page(self, on_change: Callable[[], None] | None) -> None:
        self.on_change = on_change
        if on_change is not None and (self.open_dialog is not None or not self.active_tab_is_open):
            on_change()

    def opens(self, dialog: Dialog) -> None:
        self.open_dialog = dialog
        if self.on_change is not None:
            self.on_change()

    def loses_active_tab(self) -> None:
        self.active_tab_is_open = False
        if self.on_change is not None:
            self.on_change()


async def was_cancelled(session: FakeSession, *steps: Callable[[FakeTimers], None]) -> tuple[bool, Dialog | None]:
    """Whether the watched block was cancelled by the steps, and the dialog that is named as the reason."""
    timers = FakeTimers()
    watch = PageWatch(cast(Session, session), call_later=timers.call_later)
    finished = False
    with watch:
        for step in steps:
            step(timers)
        await anyio.lowlevel.checkpoint()
        finished = True
    return not finished, watch.dialog


def opens(session: FakeSession, dialog: Dialog) -> Callable[[FakeTimers], None]:
    return lambda _: session.opens(dialog)


def answered(session: FakeSession) -> Callable[[FakeTimers], None]:
    return lambda _: setattr(session, "open_dialog", None)


def loses_tab(session: FakeSession) -> Callable[[FakeTimers], None]:
    return lambda _: session.loses_active_tab()


async def test_a_dialog_that_stays_open_ends_the_wait() -> None:
    session = FakeSession()
    assert await was_cancelled(session, opens(session, CONFIRM), FakeTimers.fire) == (True, CONFIRM)


async def test_a_dialog_that_was_open_before_ends_the_wait() -> None:
    assert await was_cancelled(FakeSession(dialog=CONFIRM), FakeTimers.fire) == (True, CONFIRM)


async def test_dialogs_that_a_person_answers_in_time_do_not_end_the_wait() -> None:
    session = FakeSession()
    steps = (opens(session, CONFIRM), answered(session), FakeTimers.fire)
    assert await was_cancelled(session, *steps, *steps) == (False, None)


async def test_the_dialog_that_opened_last_is_the_reason() -> None:
    session = FakeSession()
    assert await was_cancelled(session, opens(session, PROMPT), opens(session, CONFIRM), FakeTimers.fire) == (
        True,
        CONFIRM,
    )


async def test_the_grace_time_of_dialogs_can_be_left_out() -> None:
    session, timers = FakeSession(), FakeTimers()
    with PageWatch(cast(Session, session), dialog_grace_seconds=0.0, call_later=timers.call_later):
        session.opens(CONFIRM)
        assert [timer.seconds for timer in timers.pending] == [0.0]


async def test_any_number_of_dialogs_sets_one_timer() -> None:
    """A page that opens dialogs without end must not keep the server busy."""
    session, timers = FakeSession(), FakeTimers()
    with PageWatch(cast(Session, session), call_later=timers.call_later):
        for number in range(300):
            session.opens(Dialog(kind="confirm", message=str(number)))
        assert [timer.seconds for timer in timers.pending] == [DIALOG_GRACE_SECONDS]


@pytest.mark.parametrize("has_active_tab", [True, False])
async def test_a_closed_tab_ends_the_wait(has_active_tab: bool) -> None:
    session = FakeSession(has_active_tab=has_active_tab)
    assert await was_cancelled(session, loses_tab(session), FakeTimers.fire) == (True, None)


async def test_a_dialog_after_the_tab_has_closed_does_not_replace_the_reason() -> None:
    session, timers = FakeSession(), FakeTimers()
    watch = PageWatch(cast(Session, session), call_later=timers.call_later)
    with watch:
        session.loses_active_tab()
        timers.fire()
        session.opens(CONFIRM)
        timers.fire()
        await anyio.lowlevel.checkpoint()
    assert watch.dialog is None


async def test_a_command_that_ends_within_the_grace_time_keeps_its_result() -> None:
    session, timers = FakeSession(), FakeTimers()
    with PageWatch(cast(Session, session), call_later=timers.call_later):
        session.loses_active_tab()
        session.opens(CONFIRM)
    assert {timer.seconds for timer in timers.pending} == {DIALOG_GRACE_SECONDS, GONE_GRACE_SECONDS}
    assert all(timer.cancelled() for timer in timers.pending)


async def test_the_session_is_not_watched_after_the_block() -> None:
    session = FakeSession()
    await was_cancelled(session)
    assert session.on_change is None


async def test_an_error_inside_the_block_is_raised() -> None:
    with pytest.raises(ValueError, match="inside"), PageWatch(cast(Session, FakeSession())):
        raise ValueError("inside")


async def test_timers_of_the_event_loop_are_the_default() -> None:
    with anyio.fail_after(20), PageWatch(cast(Session, FakeSession(dialog=CONFIRM))):
        await anyio.sleep_forever()
