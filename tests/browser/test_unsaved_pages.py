"""beforeunload: a page with unsaved text is left only after the agent has agreed, whichever way leads out of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.pages import Site, WatchedPage, wait_until
from support.server import Outcome, Server, Session
from support.time_limits import UNBLOCKED_SECONDS

QUESTION = {"open": True, "type": "beforeunload", "message": ""}
WAYS_OUT = (
    *(("open", "about:blank"), ("reload",), ("back",), ("forward",)),
    *(("click", "#link"), ("click", "#submit"), ("press", "Enter"), ("click", "#script")),
)


def blocked(outcome: Outcome) -> bool:
    return (outcome.exit_code, outcome.meta.get("name")) == (1, "DIALOG_OPEN")


@pytest.fixture
def page(browser: Session, site: Site) -> WatchedPage:
    """A form with unsaved text, which is the page between two others in the history of its tab."""
    away = site.add("/away", "<title>away</title>")
    watched = site.watch(
        """<form action="/away"><input id=i><button id=submit>s</button></form><a id=link href="/away">link</a>
        <a id=pop href="/away" target=_blank>pop</a><button id=script onclick="location = '/away'">script</button>
        <button id=read onclick="report(i.value)">read</button>
        <script>addEventListener('beforeunload', event => { if (i.value) event.preventDefault() })</script>""",
        title="unsaved",
    )
    for url in (away, watched.url, away):
        browser.ok("open", url)
    browser.ok("back")
    browser.ok("fill", "#i", "unsaved text")
    return watched


def leave(session: Session, argv: tuple[str, ...]) -> None:
    """Run a command that leaves the page. The dialog of a form opens after the click that submits it."""
    outcome = session.run(*argv)
    assert blocked(outcome) or outcome.exit_code == 0, outcome
    assert outcome.seconds < UNBLOCKED_SECONDS
    wait_until(lambda: session.ok("dialog", "status") == QUESTION, what="the dialog")


def keeps_text(session: Session, page: WatchedPage) -> None:
    assert session.ok("get", "url")["url"] == page.url
    session.ok("click", "#read")
    page.wait_for("unsaved text")


@pytest.mark.parametrize("argv", WAYS_OUT, ids=" ".join)
def test_dismissing_stays_on_the_page_and_keeps_its_text(
    browser: Session, page: WatchedPage, argv: tuple[str, ...]
) -> None:
    leave(browser, argv)
    refused = browser.run("snapshot")
    assert blocked(refused)
    assert "dialog dismiss stays" in refused.stderr
    browser.ok("dialog", "dismiss")
    after = browser.run("snapshot", "-i")
    assert after.exit_code == 0
    assert after.stderr == ""
    keeps_text(browser, page)


@pytest.mark.parametrize("argv", WAYS_OUT, ids=" ".join)
def test_accepting_leaves_the_page(browser: Session, page: WatchedPage, argv: tuple[str, ...]) -> None:
    leave(browser, argv)
    answered = browser.ok("dialog", "accept")
    assert answered["title"] == {"open": "", "reload": "unsaved"}.get(argv[0], "away")
    assert answered["url"] == browser.ok("get", "url")["url"]
    assert "unsaved text" not in browser.ok("snapshot", "-i")["snapshot"]
    assert browser.ok("dialog", "status") == {"open": False}


def test_navigation_ends_at_once_with_the_dialog_and_its_answers(browser: Session, page: WatchedPage) -> None:
    for argv in (("open", "about:blank"), ("reload",), ("back",)):
        outcome = browser.run(*argv)
        assert blocked(outcome), argv
        assert outcome.seconds < UNBLOCKED_SECONDS
        browser.ok("dialog", "dismiss")
    keeps_text(browser, page)


@pytest.mark.parametrize(
    "argv",
    [
        *(("fill", "#text", "new"), ("fill", "#date", "2026-01-31"), ("fill", "#rich", "new"), ("type", "#text", "x")),
        *(("select", "#choice", "b"), ("check", "#box")),
    ],
    ids=lambda argv: " ".join(argv[:2]),
)
def test_every_command_that_changes_a_field_makes_the_page_ask(
    browser: Session, site: Site, argv: tuple[str, ...]
) -> None:
    """Chromium leaves the question out for a page that no user has touched."""
    page = site.watch(
        """<input id=text><input id=date type=date><div id=rich contenteditable>old</div><input id=box type=checkbox>
        <select id=choice><option>a<option>b</select>
        <script>for (const kind of ['input', 'change']) addEventListener(kind, () => window.changed = true)
        addEventListener('beforeunload', event => { if (window.changed) event.preventDefault() })</script>"""
    )
    browser.ok("open", page.url)
    browser.ok(*argv)
    assert blocked(browser.run("open", "about:blank"))
    browser.ok("dialog", "accept")


def test_closing_a_tab_asks_too(browser: Session, page: WatchedPage) -> None:
    browser.ok("click", "#pop")
    wait_until(lambda: len(browser.ok("tab", "list")["tabs"]) == 2, what="the second tab")
    assert blocked(browser.run("tab", "close", "t1"))
    browser.ok("dialog", "dismiss")
    keeps_text(browser, page)
    assert blocked(browser.run("tab", "close"))
    assert blocked(browser.run("tab", "close"))
    browser.ok("dialog", "accept")
    wait_until(lambda: [tab["tab"] for tab in browser.ok("tab", "list")["tabs"]] == ["t2"], what="one tab left")
    browser.ok("get", "url")


def test_a_tab_that_asks_in_the_background_can_be_answered(browser: Session, page: WatchedPage) -> None:
    browser.ok("click", "#pop")
    wait_until(lambda: len(browser.ok("tab", "list")["tabs"]) == 2, what="the second tab")
    browser.ok("tab", "switch", "t2")
    assert blocked(browser.run("tab", "close", "t1"))
    assert blocked(browser.run("get", "url"))
    browser.ok("dialog", "dismiss")
    browser.ok("get", "url")
    browser.ok("tab", "switch", "t1")
    keeps_text(browser, page)


def test_close_ends_the_session_without_a_question(browser: Session, page: WatchedPage) -> None:
    closed = browser.run("close")
    assert closed.data == {"closed": True}
    assert closed.seconds < UNBLOCKED_SECONDS


def test_close_works_while_the_page_asks(browser: Session, page: WatchedPage) -> None:
    leave(browser, ("reload",))
    closed = browser.run("close")
    assert closed.data == {"closed": True}
    assert closed.seconds < UNBLOCKED_SECONDS


def test_a_page_without_changes_is_left_without_a_question(browser: Session, page: WatchedPage) -> None:
    browser.ok("fill", "#i", "")
    browser.ok("open", "about:blank")
    assert browser.ok("dialog", "status") == {"open": False}


def test_a_page_that_always_asks_can_be_left(browser: Session, site: Site) -> None:
    trap = site.watch(
        """<button id=b onclick="report('pressed')">b</button>
        <script>addEventListener('beforeunload', event => event.preventDefault())</script>"""
    )
    browser.ok("open", trap.url)
    browser.ok("click", "#b")
    for _ in range(3):
        assert blocked(browser.run("open", "about:blank"))
        browser.ok("dialog", "dismiss")
    assert blocked(browser.run("open", "about:blank"))
    browser.ok("dialog", "accept")
    wait_until(lambda: browser.ok("get", "url")["url"] == "about:blank", what="the next page")


@pytest.fixture
def neighbour(server: Server) -> Iterator[Session]:
    """Another session with a daemon of its own. Every daemon is attached to the pages of all sessions."""
    session = server.session("neighbour")
    session.ok("open", "about:blank")
    yield session
    session.run("close")


def test_daemons_of_other_sessions_do_not_answer(browser: Session, neighbour: Session, page: WatchedPage) -> None:
    leave(browser, ("open", "about:blank"))
    for argv in (("get", "url"), ("snapshot",), ("open", "about:blank")):
        outcome = neighbour.run(*argv)
        assert outcome.exit_code == 0, outcome
        assert outcome.seconds < UNBLOCKED_SECONDS
    assert browser.ok("dialog", "status") == QUESTION
    neighbour.ok("close")
    neighbour.ok("open", "about:blank")  # With a new daemon.
    assert browser.ok("dialog", "status") == QUESTION
    browser.ok("dialog", "dismiss")
    keeps_text(browser, page)


def test_two_sessions_answer_their_own_questions(browser: Session, neighbour: Session, page: WatchedPage) -> None:
    neighbour.ok("open", page.url)
    neighbour.ok("fill", "#i", "other text")
    leave(browser, ("reload",))
    leave(neighbour, ("open", "about:blank"))
    neighbour.ok("dialog", "accept")
    assert browser.ok("dialog", "status") == QUESTION
    wait_until(lambda: neighbour.ok("get", "url")["url"] == "about:blank", what="the next page")
    browser.ok("dialog", "dismiss")
    keeps_text(browser, page)
