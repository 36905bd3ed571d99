"""A session reports dialogs and closed tabs to the command that watches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from browser_shell.browser.devtools.client import DevTools, DevToolsEvent
from browser_shell.browser.session import Session, SessionKey
from browser_shell.browser.tabs import TabTracker

UNUSED: Any = None


class SilentDevTools:
    def post(self, *_: object, **__: object) -> None:
        return


def event(tracker: TabTracker, method: str, session: str | None = None, **params: Any) -> None:
    tracker.handle(cast(DevTools, SilentDevTools()), DevToolsEvent(method=method, params=params, session=session))


def open_tab(tracker: TabTracker, target: str, context: str = "c") -> None:
    info = {"targetId": target, "type": "page", "browserContextId": context, "url": "", "title": ""}
    event(tracker, "Target.attachedToTarget", sessionId=f"at-{target}", targetInfo=info)


def open_dialog(tracker: TabTracker, target: str) -> None:
    event(tracker, "Page.javascriptDialogOpening", f"at-{target}", type="confirm", message="sure?")


def close_tab(tracker: TabTracker, target: str) -> None:
    event(tracker, "Target.targetDestroyed", targetId=target)


@pytest.fixture
def session() -> Session:
    tracker = TabTracker()
    for target in ("one", "two"):
        open_tab(tracker, target)
    return Session(
        key=SessionKey(subject="s", session_id="i"),
        name="n",
        supervisor=UNUSED,
        tracker=tracker,
        driver=UNUSED,
        directory=Path("/"),
        proxy_address="",
        proxy_port=0,
        pages=UNUSED,
        last_used=0,
        context_id="c",
        active_target_id="one",
    )


def test_events_of_another_context_are_not_reported(session: Session) -> None:
    calls: list[int] = []
    session.watch_page(lambda: calls.append(1))
    open_tab(session.tracker, "other", "elsewhere")
    open_dialog(session.tracker, "other")
    close_tab(session.tracker, "other")
    assert calls == []


@pytest.mark.parametrize("event_of", [open_dialog, close_tab])
@pytest.mark.parametrize("target", ["one", "two"])
def test_an_event_in_any_tab_of_the_session_is_reported(session: Session, event_of: Any, target: str) -> None:
    calls: list[int] = []
    session.watch_page(lambda: calls.append(1))
    event_of(session.tracker, target)
    assert calls == [1]


@pytest.mark.parametrize("event_of", [open_dialog, close_tab])
def test_an_event_before_the_watch_is_reported_at_once(session: Session, event_of: Any) -> None:
    event_of(session.tracker, "one")
    calls: list[int] = []
    session.watch_page(lambda: calls.append(1))
    assert calls == [1]


def test_an_event_after_the_watch_is_not_reported(session: Session) -> None:
    calls: list[int] = []
    session.watch_page(lambda: calls.append(1))
    session.watch_page(None)
    close_tab(session.tracker, "one")
    assert calls == []


def test_a_session_that_moved_to_another_context_stops_watching_the_old_one(session: Session) -> None:
    calls: list[int] = []
    session.watch_page(lambda: calls.append(1))
    session.context_id = ""
    session.watch_page(None)
    close_tab(session.tracker, "one")
    assert calls == []
