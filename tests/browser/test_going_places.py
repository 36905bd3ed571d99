"""Navigation: open, back, forward, reload, close, get url and get title."""

from __future__ import annotations

import itertools

import pytest

from support.pages import Site
from support.server import Session


def test_open_follows_redirects_and_returns_the_final_address(browser: Session, site: Site) -> None:
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


def test_open_accepts_about_blank(browser: Session, site: Site) -> None:
    browser.ok("open", site.add("/before-blank", "<p>text</p>"))
    browser.ok("open", "about:blank")
    assert browser.ok("get", "url")["url"] == "about:blank"


def test_back_and_forward_navigate_in_the_history(browser: Session, site: Site) -> None:
    first = site.watch("<script>addEventListener('pageshow', () => report('pageshow'))</script>", title="first")
    second = site.watch("", title="second")
    browser.ok("open", first.url)
    browser.ok("open", second.url)

    assert browser.ok("back")["url"] == first.url
    assert first.reports == ["pageshow", "pageshow"]
    assert browser.ok("get", "title")["title"] == "first"
    assert browser.ok("forward")["url"] == second.url
    assert browser.ok("get", "title")["title"] == "second"


def test_back_and_forward_without_a_page_in_the_history_are_errors(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    forward = browser.run("forward")
    assert browser.ok("back")["url"] == "about:blank"
    for outcome in (forward, browser.run("back")):
        assert (outcome.exit_code, outcome.meta["name"]) == (1, "COMMAND_FAILED")
        assert "history of this tab" in outcome.stderr


@pytest.mark.parametrize("resource", ["<img src=/slow/60>", "<iframe src=/slow/60></iframe>"])
def test_open_reports_a_page_whose_resources_do_not_arrive(browser: Session, site: Site, resource: str) -> None:
    page = site.watch(f"<button id=b onclick=\"report('alive')\">b</button>{resource}", title="half")
    opened = browser.run("open", page.url)
    assert opened.data == {"url": page.url, "title": "half"}
    assert "NOTE: the page is still loading" in opened.stderr
    assert opened.seconds < 20
    browser.ok("click", "#b")
    page.wait_for("alive")
    assert browser.ok("open", "about:blank")["url"] == "about:blank"


def test_open_reports_a_page_whose_script_does_not_arrive(browser: Session, site: Site) -> None:
    page = site.watch("<button id=b onclick=\"report('alive')\">b</button><script src=/slow/60></script>", title="half")
    opened = browser.run("open", page.url, timeout=8)
    assert opened.data == {"url": page.url, "title": "half"}
    assert "NOTE: the page is still loading" in opened.stderr
    browser.ok("click", "#b")
    page.wait_for("alive")


def test_back_to_the_empty_page_succeeds(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    assert browser.ok("back")["url"] == "about:blank"


def test_reload_requests_the_page_again(browser: Session, site: Site) -> None:
    visits = itertools.count(1)
    url = site.add("/counted", lambda _: f"<title>visit {next(visits)}</title>")
    browser.ok("open", url)
    assert browser.ok("reload")["url"] == url
    assert browser.ok("get", "title")["title"] == "visit 2"


def test_get_url_returns_the_address_set_by_a_script(browser: Session, site: Site) -> None:
    page = site.watch("""<button id=b onclick="history.pushState({}, '', '/pushed?x=1')">go</button>""")
    browser.ok("open", page.url)
    browser.ok("click", "#b")
    assert browser.ok("get", "url") == {"url": f"{site.origin}/pushed?x=1"}


def test_an_error_page_with_content_can_be_read(browser: Session, site: Site) -> None:
    browser.ok("open", site.add("/teapot", "<p id=p>tea</p>", status=418))
    assert browser.ok("get", "text", "#p")["text"] == "tea"


def test_open_fails_when_the_site_responds_with_an_empty_error(browser: Session, site: Site) -> None:
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
def test_open_of_a_port_that_is_not_allowed_sends_no_request(browser: Session, site: Site) -> None:
    before = len(site.requests)
    outcome = browser.run("open", f"http://127.0.0.1:{site.port + 1}/")
    assert (outcome.exit_code, outcome.meta["name"]) == (126, "POLICY_BLOCKED")
    assert len(site.requests) == before


def test_close_returns_whether_the_session_was_open(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    assert browser.ok("close") == {"closed": True}
    assert browser.ok("close") == {"closed": False}


def test_a_new_session_has_an_empty_page(browser: Session) -> None:
    assert browser.ok("get", "url") == {"url": "about:blank"}


def test_open_waits_for_an_application_that_loads_its_content_after_its_menu(browser: Session, site: Site) -> None:
    url = site.add(
        "/shell",
        """<title>shell</title><a href="#menu">Menu</a><main></main><script type="module">
        for (let part = 1; part <= 6; part++) {
          await new Promise((resolve) => setTimeout(resolve, 200))
          document.querySelector("main").insertAdjacentHTML("beforeend", `<label>Guest ${part} <input></label>`)
        }</script>""",
    )
    browser.ok("open", url)
    assert 'textbox "Guest 6"' in browser.ok("snapshot", "-i")["snapshot"]
