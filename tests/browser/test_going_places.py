"""open, back, forward, reload, close, get url and get title."""

from __future__ import annotations

import pytest

from support.pages import Site
from support.server import Session


def test_open_reports_where_it_arrived(browser: Session, site: Site) -> None:
    end = site.add("/end", "<title>The end</title>")
    middle = site.add("/middle", "", {"Location": end})
    start = site.add("/start", "", {"Location": middle})

    opened = browser.ok("open", start)

    assert opened["url"] == end
    assert opened["title"] == "The end"
    assert [request.path for request in site.requests if request.path in ("/start", "/middle", "/end")] == [
        "/start",
        "/middle",
        "/end",
    ]


def test_open_takes_about_blank(browser: Session, site: Site) -> None:
    browser.ok("open", site.add("/before-blank", "<p>text</p>"))
    browser.ok("open", "about:blank")
    assert browser.ok("get", "url")["url"] == "about:blank"


def test_the_history_goes_back_and_forward(browser: Session, site: Site) -> None:
    first = site.watch("<script>addEventListener('pageshow', () => report('shown'))</script>", title="first")
    second = site.watch("", title="second")
    browser.ok("open", first.url)
    browser.ok("open", second.url)

    assert browser.ok("back")["url"] == first.url
    assert first.reports == ["shown", "shown"]
    assert browser.ok("get", "title")["title"] == "first"
    assert browser.ok("forward")["url"] == second.url
    assert browser.ok("get", "title")["title"] == "second"


def test_back_to_the_empty_page_is_no_failure(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    assert browser.ok("back")["url"] == "about:blank"


def test_reload_asks_the_site_again(browser: Session, site: Site) -> None:
    served: list[str] = []

    def count(_: object) -> str:
        served.append("once")
        return f"<title>visit {len(served)}</title>"

    url = site.add("/counted", count)
    browser.ok("open", url)
    assert browser.ok("reload")["url"] == url
    assert browser.ok("get", "title")["title"] == "visit 2"


def test_get_url_follows_the_page(browser: Session, site: Site) -> None:
    page = site.watch("""<button id=b onclick="history.pushState({}, '', '/pushed?x=1')">go</button>""")
    browser.ok("open", page.url)
    browser.ok("click", "#b")
    assert browser.ok("get", "url") == {"url": f"{site.origin}/pushed?x=1"}


def test_an_error_page_of_a_site_can_be_read(browser: Session, site: Site) -> None:
    browser.ok("open", site.add("/teapot", "<title>short and stout</title><p id=p>tea</p>"))
    assert browser.ok("get", "text", "#p")["text"] == "tea"


def test_a_page_that_cannot_be_reached_is_a_failed_command(browser: Session, site: Site) -> None:
    outcome = browser.run("open", f"{site.origin}/nothing-here")
    assert outcome.exit_code == 1
    assert outcome.meta["name"] == "COMMAND_FAILED"
    assert outcome.is_error


def test_a_host_that_does_not_resolve_has_its_own_error(browser: Session) -> None:
    outcome = browser.run("open", "http://nosuch.invalid/")
    assert (outcome.exit_code, outcome.meta["name"], outcome.meta["rule"]) == (1, "NAME_NOT_RESOLVED", "dns.no_answer")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_redirect_to_a_host_that_does_not_resolve_has_the_same_error(
    browser: Session, site: Site, scheme: str
) -> None:
    outcome = browser.run("open", site.add(f"/to-{scheme}", "", {"Location": f"{scheme}://nosuch.invalid/"}))
    assert (outcome.exit_code, outcome.meta["name"], outcome.meta["rule"]) == (1, "NAME_NOT_RESOLVED", "dns.no_answer")


@pytest.mark.promise("open:unlisted-is-never-asked")
def test_open_refuses_a_neighbouring_port_without_a_connection(browser: Session, site: Site) -> None:
    before = len(site.requests)
    outcome = browser.run("open", f"http://127.0.0.1:{site.port + 1}/")
    assert (outcome.exit_code, outcome.meta["name"]) == (126, "POLICY_BLOCKED")
    assert len(site.requests) == before


def test_close_reports_whether_the_session_existed(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    assert browser.ok("close") == {"closed": True}
    assert browser.ok("close") == {"closed": False}


def test_a_session_that_never_opened_anything_shows_an_empty_page(browser: Session) -> None:
    assert browser.ok("get", "url") == {"url": "about:blank"}
