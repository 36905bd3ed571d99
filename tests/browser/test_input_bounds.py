"""Points, keys and drags of an agent reach the page of its own session, and neither the browser nor other sessions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from support.pages import Site
from support.server import Server, Session

_NUMBERS = itertools.count()
LISTENING = """<body style="margin:0;height:100vh"><input id=i style="position:fixed;top:200px">
<script>for (const kind of ['mousedown', 'keydown', 'dragstart', 'mousemove'])
  addEventListener(kind, event => report([kind, event.clientX ?? event.key, event.clientY ?? 0]), true)
addEventListener('keydown', event => report(['key', event.key]))</script>"""


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Session, Session]]:
    """Two sessions, whose windows cover each other on the display."""
    sessions = [server.session(f"bounds{next(_NUMBERS)}") for _ in range(2)]
    yield sessions[0], sessions[1]
    for session in sessions:
        session.run("close")


@pytest.mark.promise("input:own-page-only")
@pytest.mark.parametrize(
    "argv",
    [
        ("click", "--at", "9999,9999"),
        ("click", "--at", "9999,1"),
        ("hover", "--at", "1,9999"),
        ("drag", "--from", "10,10", "--to", "9999,9999"),
        ("drag", "--from", "9999,9999", "--to", "10,10"),
        ("click", "--at", "9999,9999", "#i"),
    ],
    ids=" ".join,
)
def test_a_point_outside_the_page_is_refused_and_nothing_is_touched(
    browser: Session, site: Site, argv: tuple[str, ...]
) -> None:
    page = site.watch(LISTENING)
    browser.ok("open", page.url)
    outcome = browser.run(*argv)
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert len(browser.ok("tab", "list")["tabs"]) == 1
    assert [report for report in page.reports if report[0] in ("mousedown", "dragstart")] == []


@pytest.mark.promise("input:own-page-only")
def test_the_first_point_of_the_window_is_the_first_point_of_the_page(browser: Session, site: Site) -> None:
    page = site.watch(LISTENING)
    browser.ok("open", page.url)
    browser.ok("click", "--at", "0,0")
    page.wait_for(["mousedown", 0, 0])
    assert len(browser.ok("tab", "list")["tabs"]) == 1


@pytest.mark.promise("input:own-page-only")
def test_a_point_reaches_the_page_of_its_own_session_only(pair: tuple[Session, Session], site: Site) -> None:
    own, other = site.watch(LISTENING), site.watch(LISTENING)
    pair[0].ok("open", own.url)
    pair[1].ok("open", other.url)
    pair[0].ok("click", "--at", "40,60")
    pair[0].ok("press", "a")
    pair[0].ok("drag", "--from", "10,10", "--to", "90,90")
    own.wait_for(["mousedown", 40, 60], ["key", "a"], ["mousedown", 10, 10])
    pair[1].ok("get", "title")
    assert [report for report in other.reports if report[0] != "mousemove"] == []


@pytest.mark.promise("input:own-page-only")
@pytest.mark.parametrize(
    "key",
    [
        *("Control+t", "Control+n", "Control+Shift+n", "Control+w", "Control+Shift+t", "Control+l", "Control+o"),
        *("Control+s", "Control+p", "Control+u", "Control+h", "Control+j", "Control+Shift+i", "Control+Shift+Delete"),
        *("F1", "F5", "F6", "F10", "F11", "F12", "Alt+F4", "Alt+ArrowLeft", "Alt+Home", "Alt+e", "Control+Tab"),
        *("Control+PageDown", "Control+1", "Control+Shift+Escape", "ContextMenu", "Meta+q", "PrintScreen", "Escape"),
    ],
)
def test_keys_are_sent_to_the_page_and_not_to_the_browser(browser: Session, site: Site, key: str) -> None:
    page = site.watch(LISTENING)
    browser.ok("open", page.url)
    browser.ok("press", key)
    (tab,) = browser.ok("tab", "list")["tabs"]
    assert tab["url"] == page.url
    assert browser.ok("get", "title")["title"] == "watched"
    name = key.rsplit("+", 1)[-1]
    page.wait_for(["key", name.upper() if len(name) == 1 and "Shift" in key else name])
