"""Popups and new tabs: commands can use them, they do not slow their opener, and other sessions cannot use them."""

from __future__ import annotations

from typing import Any

import pytest

from support.in_flight import InFlight, has_started
from support.pages import Site, WatchedPage, wait_until
from support.server import Server, Session
from support.time_limits import HIDDEN_CLICK_SECONDS, UNBLOCKED_SECONDS

WAYS_TO_OPEN = {
    "popup window": "window.w = window.open('{url}', 'w', 'width=320,height=240')",
    "new tab with opener": "window.w = window.open('{url}')",
    "new tab without opener": "window.open('{url}', '_blank', 'noopener')",
}


def tab_list(session: Session) -> list[dict[str, Any]]:
    tabs: list[dict[str, Any]] = session.ok("tab", "list")["tabs"]
    return tabs


def wait_for_tabs(session: Session, count: int) -> list[dict[str, Any]]:
    wait_until(lambda: len(tab_list(session)) == count, what=f"{count} tabs")
    return tab_list(session)


def opener_of(site: Site, url: str, way: str) -> WatchedPage:
    return site.watch(
        f"""<button id=open onclick="{WAYS_TO_OPEN[way].format(url=url)}">open</button>
        <button id=b onclick="report('alive')">b</button>""",
        title="opener",
    )


@pytest.mark.parametrize("way", WAYS_TO_OPEN)
def test_a_new_tab_can_be_used_and_does_not_slow_its_opener(browser: Session, site: Site, way: str) -> None:
    child = site.watch("<p id=p>inside</p><button id=b onclick=\"report('child')\">b</button>", title="child")
    page = opener_of(site, child.url, way)
    browser.ok("open", page.url)

    clicked = browser.run("click", "#open")
    wait_for_tabs(browser, 2)
    assert clicked.exit_code == 0
    assert clicked.seconds < HIDDEN_CLICK_SECONDS

    # Commands still act on the opener, and Chromium still draws it.
    for argv in (("click", "#b"), ("screenshot",)):
        outcome = browser.run(*argv)
        assert outcome.exit_code == 0
        assert outcome.seconds < HIDDEN_CLICK_SECONDS, argv
    page.wait_for("alive")

    tabs = browser.ok("tab", "switch", "t2")["tabs"]
    assert [(tab["tab"], tab["active"]) for tab in tabs] == [("t1", False), ("t2", True)]
    wait_until(lambda: browser.ok("get", "title")["title"] == "child", what="the page of the new tab")
    for argv in (("click", "#b"), ("screenshot",)):
        outcome = browser.run(*argv)
        assert outcome.exit_code == 0
        assert outcome.seconds < HIDDEN_CLICK_SECONDS, argv
    child.wait_for("child")

    assert [tab["tab"] for tab in browser.ok("tab", "close")["tabs"]] == ["t1"]
    browser.ok("click", "#b")
    assert page.reports == ["alive", "alive"]


def test_a_click_that_opens_a_tab_returns_a_note_about_it(browser: Session, site: Site) -> None:
    child = site.watch("", title="child")
    page = site.watch(f"<a id=a target=_blank href='{child.url}'>a</a>")
    browser.ok("open", page.url)
    outcome = browser.run("click", "#a")
    wait_until(
        lambda: ("child", child.url) in [(tab["title"], tab["url"]) for tab in tab_list(browser)], what="the tab"
    )
    assert "tab switch t2" in outcome.stderr


def test_a_page_can_open_several_popups(browser: Session, site: Site) -> None:
    child = site.watch("<p>x</p>")
    page = site.watch(
        f"<button id=o onclick=\"window.open('{child.url}', '', 'width=300,height=300'); report('opened')\">o</button>"
    )
    browser.ok("open", page.url)
    for count in range(2, 6):
        clicked = browser.run("click", "#o")
        assert clicked.exit_code == 0
        assert clicked.seconds < HIDDEN_CLICK_SECONDS
        wait_for_tabs(browser, count)
    assert page.reports == ["opened"] * 4


def test_commands_act_on_the_tab_that_tab_switch_selected(browser: Session, site: Site) -> None:
    child = site.watch("<input id=i oninput='report(this.value)'>", title="child")
    page = site.watch(f"<a id=a target=_blank href='{child.url}'>a</a><input id=i oninput='report(this.value)'>")
    browser.ok("open", page.url)
    browser.ok("click", "#a")
    wait_for_tabs(browser, 2)
    browser.ok("tab", "switch", "t2")
    browser.ok("fill", "#i", "to the child")
    browser.ok("tab", "switch", "t1")
    browser.ok("fill", "#i", "to the opener")
    child.wait_for("to the child")
    page.wait_for("to the opener")


def test_tab_close_closes_the_named_tab_or_the_active_tab(browser: Session, site: Site) -> None:
    child = site.watch("", title="child")
    page = site.watch(f"<a id=a target=_blank href='{child.url}'>a</a>", title="opener")
    browser.ok("open", page.url)
    for _ in range(2):
        browser.ok("click", "#a")
    wait_for_tabs(browser, 3)
    assert [tab["tab"] for tab in browser.ok("tab", "close", "t2")["tabs"]] == ["t1", "t3"]
    browser.ok("tab", "switch", "t3")
    assert [tab["tab"] for tab in browser.ok("tab", "close")["tabs"]] == ["t1"]
    assert browser.ok("get", "title")["title"] == "opener"


def test_closing_the_only_tab_and_naming_an_unknown_tab_fail(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("", title="alone").url)
    for argv in (("tab", "close"), ("tab", "close", "t1"), ("tab", "switch", "t7"), ("tab", "close", "t7")):
        outcome = browser.run(*argv)
        assert (outcome.exit_code, outcome.meta["name"]) == (1, "COMMAND_FAILED"), argv
    assert browser.ok("get", "title")["title"] == "alone"


def test_the_opener_is_active_after_its_tab_closed_itself(browser: Session, site: Site) -> None:
    child = site.watch("<button id=x onclick='window.close()'>x</button>", title="child")
    page = opener_of(site, child.url, "new tab with opener")
    browser.ok("open", page.url)
    browser.ok("click", "#open")
    wait_for_tabs(browser, 2)
    browser.ok("tab", "switch", "t2")
    browser.ok("click", "#x")
    (tab,) = wait_for_tabs(browser, 1)
    assert (tab["tab"], tab["active"]) == ("t1", True)
    after = browser.run("get", "title")
    assert after.data == {"title": "opener"}
    assert after.seconds < UNBLOCKED_SECONDS


def test_tabs_that_open_and_close_delay_no_command(server: Server, browser: Session, site: Site) -> None:
    """Chromium does not answer a request of the driver if the page closes in the meantime: here one in ten."""
    child = site.watch("<button id=x onclick='window.close()'>x</button>", title="child")
    page = site.watch(f"<a id=a target=_blank rel=opener href='{child.url}'>a</a>", title="opener")
    bystander = server.session("bystander")
    bystander.ok("open", page.url)
    browser.ok("open", page.url)
    for number in range(12):
        for _ in range(2):
            browser.ok("click", "#a")
        first, second = f"t{2 * number + 2}", f"t{2 * number + 3}"
        wait_for_tabs(browser, 3)
        browser.ok("tab", "close", first)
        browser.ok("tab", "switch", second)
        browser.ok("click", "#x")
        wait_for_tabs(browser, 1)
        for session in (browser, bystander):
            outcome = session.run("get", "title")
            assert outcome.data == {"title": "opener"}
            assert outcome.seconds < UNBLOCKED_SECONDS
    bystander.run("close")


def test_a_command_ends_when_its_tab_closes(browser: Session, site: Site) -> None:
    """The driver may miss the close of its page and would then wait for an answer of the page until the deadline."""
    child, response = site.watch("", title="child"), site.hold()
    page = site.watch(
        f"""<button id=open onclick="window.w = window.open('{child.url}')">open</button>
        <button id=close onclick="fetch('{response.url}').then(() => w.close())">close</button>""",
        title="opener",
    )
    browser.ok("open", page.url)
    browser.ok("click", "#open")
    wait_for_tabs(browser, 2)
    browser.ok("click", "#close")
    browser.ok("tab", "switch", "t2")
    call = InFlight(browser, "wait", 25_000)
    wait_until(lambda: has_started(browser, "wait"), what="the wait")
    response.release()
    outcome = call.outcome()
    assert outcome.meta["name"] == "SESSION_GONE"
    assert outcome.seconds < 20
    after = browser.run("get", "title")
    assert after.data == {"title": "opener"}
    assert after.seconds < UNBLOCKED_SECONDS


def test_a_session_has_an_empty_page_after_its_last_tab_closed_itself(browser: Session, site: Site) -> None:
    child = site.watch("<button id=x onclick='window.close()'>x</button>", title="child")
    browser.ok("open", opener_of(site, child.url, "new tab with opener").url)
    browser.ok("click", "#open")
    wait_for_tabs(browser, 2)
    browser.ok("tab", "close", "t1")
    browser.run("click", "#x")

    def has_an_empty_page() -> bool:
        outcome = browser.run("get", "url")
        if outcome.is_error:  # The tab closed during this command.
            assert outcome.meta["name"] == "SESSION_GONE"
            return False
        return bool(outcome.data == {"url": "about:blank"})

    wait_until(has_an_empty_page, what="an empty page")
    browser.ok("open", site.watch("", title="next").url)
    assert browser.ok("get", "title")["title"] == "next"


@pytest.mark.promise("sessions:own-tabs-only")
def test_a_session_cannot_use_tabs_and_popups_of_another_session(server: Server, browser: Session, site: Site) -> None:
    other = server.session("other-tabs")
    child = site.watch("", title="secret child")
    page = opener_of(site, child.url, "popup window")
    other.ok("open", page.url)
    browser.ok("open", site.watch("", title="mine").url)
    other.ok("click", "#open")
    wait_for_tabs(other, 2)
    try:
        assert [tab["title"] for tab in tab_list(browser)] == ["mine"]
        assert browser.run("tab", "switch", "t2").exit_code == 1
        assert browser.run("tab", "close", "t2").exit_code == 1
        assert len(tab_list(other)) == 2
        assert browser.ok("get", "title")["title"] == "mine"
    finally:
        other.ok("close")
