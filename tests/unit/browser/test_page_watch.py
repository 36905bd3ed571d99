"""A command waits neither for a page that shows a dialog nor for a tab that has gone; passing trouble is no trouble."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import anyio
import pytest

from browser_shell.browser import page_watch as page_trouble
from browser_shell.browser.page_watch import PageWatch
from browser_shell.core.pages import Dialog, Tab
from browser_shell.core.ports import BrowserSession

ASKS = Dialog(kind="confirm", message="sure?")
OTHER = Dialog(kind="alert", message="done")


@pytest.fixture(autouse=True)
def _short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_trouble, "DIALOG_GRACE_SECONDS", 0.05)
    monkeypatch.setattr(page_trouble, "GONE_GRACE_SECONDS", 0.05)


class FakeSession:
    """What `PageWatch` asks of a session."""

    def __init__(self, *, dialog: Dialog | None = None, has_tab: bool = True) -> None:
        self.shown, self.has_tab = dialog, has_tab
        self.tell: Callable[[], None] | None = None

    def dialog(self) -> Dialog | None:
        return self.shown

    def tabs(self) -> list[Tab]:
        return [Tab(tab_id="t1", url="", title="", active=False)] + (
            [Tab(tab_id="t2", url="", title="", active=True)] if self.has_tab else []
        )

    def watch(self, on_trouble: Callable[[], None] | None) -> None:
        self.tell = on_trouble
        if on_trouble is not None and (self.shown is not None or not self.has_tab):
            on_trouble()

    def shows(self, dialog: Dialog | None) -> None:
        self.shown = dialog
        if dialog is not None and self.tell is not None:
            self.tell()

    def loses_tab(self) -> None:
        self.has_tab = False
        if self.tell is not None:
            self.tell()


class Restless(FakeSession):
    """Shows another dialog whenever somebody looks."""

    looks = 0

    def dialog(self) -> Dialog | None:
        self.looks += 1
        return Dialog(kind="alert", message=str(self.looks))


async def cut_short(session: FakeSession, *then: Callable[[], None], seconds: float = 5) -> PageWatch:
    """Whether it was: the block itself would take so many seconds."""
    trouble = PageWatch(cast(BrowserSession, session))
    with trouble:
        for act in then:
            act()
            await anyio.sleep(0.02)
        await anyio.sleep(seconds)
    return trouble


async def test_a_dialog_that_stays_ends_the_wait() -> None:
    session = FakeSession()
    with anyio.fail_after(3):
        trouble = await cut_short(session, lambda: session.shows(ASKS))
    assert trouble.dialog is ASKS


async def test_a_dialog_that_was_there_before_ends_the_wait_too() -> None:
    with anyio.fail_after(3):
        assert (await cut_short(FakeSession(dialog=ASKS))).dialog is ASKS


async def test_one_alert_after_the_other_is_no_trouble_as_long_as_none_stays() -> None:
    session = FakeSession()
    acts = [lambda: session.shows(OTHER), lambda: session.shows(None), lambda: session.shows(ASKS)]
    trouble = await cut_short(session, *acts, lambda: session.shows(None), seconds=0.2)
    assert trouble.dialog is None


async def test_the_dialog_that_came_last_is_the_one_that_stays() -> None:
    session = FakeSession()
    with anyio.fail_after(3):
        trouble = await cut_short(session, lambda: session.shows(OTHER), lambda: session.shows(ASKS))
    assert trouble.dialog is ASKS


async def test_any_number_of_dialogs_is_looked_at_by_one_timer() -> None:
    """A page that opens them without end must not keep the server busy."""
    session = Restless()
    with PageWatch(cast(BrowserSession, session)):
        for number in range(300):
            session.shows(Dialog(kind="alert", message=str(number)))
        session.looks = 0
        await anyio.sleep(0.3)
    assert 1 <= session.looks < 20


async def test_a_dialog_that_another_one_hid_is_found() -> None:
    session = FakeSession()
    with anyio.fail_after(3):
        # Nothing is told when the alert is answered and the other tab's question comes to light.
        trouble = await cut_short(session, lambda: session.shows(OTHER), lambda: setattr(session, "shown", ASKS))
    assert trouble.dialog is ASKS


async def test_a_dialog_that_comes_after_the_loss_of_the_tab_does_not_hide_it() -> None:
    session = FakeSession()
    trouble = PageWatch(cast(BrowserSession, session))
    with trouble:
        try:
            session.loses_tab()
            await anyio.sleep(0.02)
            session.shows(ASKS)
            await anyio.sleep(5)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.1)
    assert trouble.dialog is None


@pytest.mark.parametrize("before", [True, False])
async def test_a_tab_that_goes_ends_the_wait(before: bool) -> None:
    session = FakeSession(has_tab=not before)
    with anyio.fail_after(3):
        assert (await cut_short(session, session.loses_tab)).dialog is None


async def test_a_command_that_ends_meanwhile_keeps_its_answer() -> None:
    session = FakeSession()
    trouble = PageWatch(cast(BrowserSession, session))
    ended = False
    with trouble:
        session.loses_tab()
        ended = True
    await anyio.sleep(0.1)
    assert ended


async def test_whoever_looked_looks_no_more() -> None:
    session = FakeSession()
    await cut_short(session, seconds=0)
    assert session.tell is None


async def test_what_goes_wrong_inside_is_raised() -> None:
    with pytest.raises(ValueError, match="inside"), PageWatch(cast(BrowserSession, FakeSession())):
        raise ValueError("inside")
