"""Who runs a command hears of a dialog or of the loss of a tab, also of one that came before it listened."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from browser_shell.browser.devtools.client import DevTools, DevToolsEvent
from browser_shell.browser.session import Session, SessionKey
from browser_shell.browser.tabs import TabTracker

NOBODY: Any = None


class Silent:
    def post(self, *_: object, **__: object) -> None:
        return


def event(tracker: TabTracker, method: str, session: str | None = None, **params: Any) -> None:
    tracker.handle(cast(DevTools, Silent()), DevToolsEvent(method=method, params=params, session=session))


def open_tab(tracker: TabTracker, target: str, context: str = "c") -> None:
    info = {"targetId": target, "type": "page", "browserContextId": context, "url": "", "title": ""}
    event(tracker, "Target.attachedToTarget", sessionId=f"at-{target}", targetInfo=info)


def ask(tracker: TabTracker, target: str) -> None:
    event(tracker, "Page.javascriptDialogOpening", f"at-{target}", type="confirm", message="sure?")


def close(tracker: TabTracker, target: str) -> None:
    event(tracker, "Target.targetDestroyed", targetId=target)


@pytest.fixture
def session() -> Session:
    tracker = TabTracker()
    for target in ("one", "two"):
        open_tab(tracker, target)
    return Session(
        key=SessionKey(subject="s", session_id="i"),
        name="n",
        supervisor=NOBODY,
        tracker=tracker,
        driver=NOBODY,
        directory=Path("/"),
        proxy_address="",
        proxy_port=0,
        last_used=0,
        context_id="c",
        active="one",
    )


def test_nothing_is_told_while_nothing_happens(session: Session) -> None:
    told: list[int] = []
    session.watch(lambda: told.append(1))
    open_tab(session.tracker, "other", "elsewhere")
    ask(session.tracker, "other")
    close(session.tracker, "other")
    assert told == []


@pytest.mark.parametrize("what", [ask, close])
@pytest.mark.parametrize("target", ["one", "two"])
def test_trouble_of_the_session_is_told(session: Session, what: Any, target: str) -> None:
    told: list[int] = []
    session.watch(lambda: told.append(1))
    what(session.tracker, target)
    assert told == [1]


@pytest.mark.parametrize("what", [ask, close])
def test_trouble_before_the_command_is_told_at_once(session: Session, what: Any) -> None:
    what(session.tracker, "one")
    told: list[int] = []
    session.watch(lambda: told.append(1))
    assert told == [1]


def test_trouble_after_the_command_is_nobodys(session: Session) -> None:
    told: list[int] = []
    session.watch(lambda: told.append(1))
    session.watch(None)
    close(session.tracker, "one")
    assert told == []


def test_a_session_that_moved_to_another_browser_meanwhile_hears_no_more_of_the_old_one(session: Session) -> None:
    told: list[int] = []
    session.watch(lambda: told.append(1))
    session.context_id = ""
    session.watch(None)
    close(session.tracker, "one")
    assert told == []
