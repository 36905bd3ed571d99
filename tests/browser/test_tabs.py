"""Popups and new tabs: reachable, harmless to their opener, and private to their session."""

from __future__ import annotations

from typing import Any

import pytest

from support.pages import Site, WatchedPage, wait_until
from support.server import Server, Session

WAYS_TO_OPEN = {
    "popup window": "window.w = window.open('{url}', 'w', 'width=320,height=240')",
    "new tab with opener": "window.w = window.open('{url}')",
    "new tab without opener": "window.open('{url}', '_blank', 'noopener')",
}


def tabs(session: Session) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = session.ok("tab", "list")["tabs"]
    return listed


def wait_for_tabs(session: Session, count: int) -> list[dict[str, Any]]:
    wait_until(lambda: len(tabs(session)) == count, what=f"{count} tabs")
    return tabs(session)


def opener_of(site: Site, url: str, way: str) -> WatchedPage:
    return site.watch(
        f"""<button id=open onclick="{WAYS_TO_OPEN[way].format(url=url)}">open</button>
        <button id=b onclick="report('alive')">b</button>""",
        title="opener",
    )


@pytest.mark.parametrize("way", WAYS_TO_OPEN)
def test_what_a_page_opens_is_reachable_and_does_not_stall_it(browser: Session, site: Site, way: str) -> None:
    child = site.watch("<p id=p>inside</p><button id=b onclick=\"report('child')\">b</button>", title="child")
    page = opener_of(site, child.url, way)
    browser.ok("open", page.url)

    clicked = browser.run("click", "#open")
    wait_for_tabs(browser, 2)
    assert clicked.exit_code == 0
    assert clicked.seconds < 4

    # The opener is still the one that commands act on, and still quick.
    for argv in (("click", "#b"), ("screenshot",)):
        outcome = browser.run(*argv)
        assert outcome.exit_code == 0
        assert outcome.seconds < 4, argv
    page.wait_for("alive")

    listed = browser.ok("tab", "switch", "t2")["tabs"]
    assert [(tab["tab"], tab["active"]) for tab in listed] == [("t1", False), ("t2", True)]
    assert browser.ok("get", "title")["title"] == "child"
    for argv in (("click", "#b"), ("screenshot",)):
        outcome = browser.run(*argv)
        assert outcome.exit_code == 0
        assert outcome.seconds < 4, argv
    child.wait_for("child")

    assert [tab["tab"] for tab in browser.ok("tab", "close")["tabs"]] == ["t1"]
    browser.ok("click", "#b")
    assert page.reports == ["alive", "alive"]


def test_blank_link_opens_a_tab_with_a_note(browser: Session, site: Site) -> None:
    child = site.watch("", title="child")
    page = site.watch(f"<a id=a target=_blank href='{child.url}'>a</a>")
    browser.ok("open", page.url)
    outcome = browser.run("click", "#a")
    listed = wait_for_tabs(browser, 2)
    assert (listed[1]["title"], listed[1]["url"]) == ("child", child.url)
    assert "tab switch t2" in outcome.stderr


def test_popups_open_again_and_again(browser: Session, site: Site) -> None:
    child = site.watch("<p>x</p>")
    page = site.watch(
        f"<button id=o onclick=\"window.open('{child.url}', '', 'width=300,height=300'); report('opened')\">o</button>"
    )
    browser.ok("open", page.url)
    for count in range(2, 6):
        assert browser.run("click", "#o", timeout=5).exit_code == 0
        wait_for_tabs(browser, count)
    assert page.reports == ["opened"] * 4


def test_tab_switch_and_back_act_on_the_chosen_tab(browser: Session, site: Site) -> None:
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


def test_tab_close_names_a_tab_or_takes_the_active_one(browser: Session, site: Site) -> None:
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


def test_the_only_tab_is_not_closed_and_an_unknown_one_is_not_found(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("", title="alone").url)
    for argv in (("tab", "close"), ("tab", "close", "t1"), ("tab", "switch", "t7"), ("tab", "close", "t7")):
        outcome = browser.run(*argv)
        assert (outcome.exit_code, outcome.meta["name"]) == (1, "COMMAND_FAILED"), argv
    assert browser.ok("get", "title")["title"] == "alone"


def test_a_tab_that_closes_itself_gives_way_to_the_one_before(browser: Session, site: Site) -> None:
    child = site.watch("<button id=x onclick='window.close()'>x</button>", title="child")
    page = opener_of(site, child.url, "new tab with opener")
    browser.ok("open", page.url)
    browser.ok("click", "#open")
    wait_for_tabs(browser, 2)
    browser.ok("tab", "switch", "t2")
    browser.ok("click", "#x")
    listed = wait_for_tabs(browser, 1)
    assert (listed[0]["tab"], listed[0]["active"]) == ("t1", True)
    after = browser.run("get", "title")
    assert after.data == {"title": "opener"}
    assert after.seconds < 3


def test_tabs_that_come_and_go_hold_nothing_up(server: Server, browser: Session, site: Site) -> None:
    """Chromium does not answer what the driver asks a page that goes away in the meantime, one time in ten here."""
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
            assert outcome.seconds < 10
    bystander.run("close")


def test_a_command_does_not_outlast_its_tab(browser: Session, site: Site) -> None:
    """The driver may not notice that its page has gone, and would wait for the page's answer until the deadline."""
    child = site.watch("", title="child")
    page = site.watch(
        f"""<button id=open onclick="window.w = window.open('{child.url}')">open</button>
        <button id=later onclick="setTimeout(() => w.close(), 3000); report('soon')">later</button>""",
        title="opener",
    )
    browser.ok("open", page.url)
    browser.ok("click", "#open")
    wait_for_tabs(browser, 2)
    browser.ok("click", "#later")
    page.wait_for("soon")
    browser.ok("tab", "switch", "t2")
    outcome = browser.run("wait", 25_000)
    assert outcome.meta["name"] == "SESSION_GONE"
    assert outcome.seconds < 15
    after = browser.run("get", "title")
    assert after.data == {"title": "opener"}
    assert after.seconds < 3


def test_the_session_lives_on_when_its_last_tab_closes_itself(browser: Session, site: Site) -> None:
    child = site.watch("<button id=x onclick='window.close()'>x</button>", title="child")
    browser.ok("open", opener_of(site, child.url, "new tab with opener").url)
    browser.ok("click", "#open")
    wait_for_tabs(browser, 2)
    browser.ok("tab", "close", "t1")
    browser.run("click", "#x")

    def shows_an_empty_page() -> bool:
        outcome = browser.run("get", "url")
        if outcome.is_error:  # The tab closed while this very command ran.
            assert outcome.meta["name"] == "SESSION_GONE"
            return False
        return bool(outcome.data == {"url": "about:blank"})

    wait_until(shows_an_empty_page, what="an empty page")
    browser.ok("open", site.watch("", title="next").url)
    assert browser.ok("get", "title")["title"] == "next"


@pytest.mark.promise("sessions:own-tabs-only")
def test_a_session_sees_only_its_own_tabs_and_popups(server: Server, browser: Session, site: Site) -> None:
    other = server.session("tabs-of-another")
    child = site.watch("", title="secret child")
    page = opener_of(site, child.url, "popup window")
    other.ok("open", page.url)
    browser.ok("open", site.watch("", title="mine").url)
    other.ok("click", "#open")
    wait_for_tabs(other, 2)
    try:
        assert [tab["title"] for tab in tabs(browser)] == ["mine"]
        assert browser.run("tab", "switch", "t2").exit_code == 1
        assert browser.run("tab", "close", "t2").exit_code == 1
        assert len(tabs(other)) == 2
        assert browser.ok("get", "title")["title"] == "mine"
    finally:
        other.ok("close")
