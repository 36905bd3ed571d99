"""Pages that hang: the call ends at its deadline, the next call works, and other sessions are not affected."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from support.in_flight import InFlight, has_started, opening_slowly
from support.pages import Site, wait_until
from support.server import Server, Session

RECOVERY_SECONDS = 3


@pytest.fixture
def other(server: Server, site: Site) -> Iterator[Session]:
    session = server.session("bystander")
    session.ok("open", site.watch("<button id=b>b</button>").url)
    yield session
    session.run("close")


def test_a_page_that_hangs_is_closed_at_the_deadline(browser: Session, other: Session, site: Site) -> None:
    good = site.watch("<p id=p>well</p>")
    page = site.watch("<button id=b onclick=\"report('begun'); while (true) {}\">b</button>")
    browser.ok("open", page.url)
    call = InFlight(browser, "click", "#b", timeout=3)
    page.wait_for("begun")
    for argv in (("click", "#b"), ("screenshot",), ("snapshot", "-i")):
        outcome = other.run(*argv)
        assert outcome.exit_code == 0
        assert outcome.seconds < 2, argv
    assert call.running, "the hang ended before the other session was tested"

    hung = call.outcome()
    assert (hung.exit_code, hung.meta["name"]) == (124, "TIMEOUT")
    assert hung.seconds < 3 + RECOVERY_SECONDS
    after = browser.run("open", good.url)
    print(f"after a hung page: next open {after.seconds:.2f} s")
    assert after.exit_code == 0
    assert after.seconds < RECOVERY_SECONDS
    assert browser.ok("get", "text", "#p")["text"] == "well"


def test_a_page_that_hangs_during_loading_is_closed_at_the_deadline(browser: Session, site: Site) -> None:
    hung = browser.run("open", site.add("/endless", "<script>while (true) {}</script>"), timeout=2)
    assert hung.exit_code == 124
    after = browser.run("get", "url")
    assert after.data == {"url": "about:blank"}
    assert after.seconds < RECOVERY_SECONDS


def test_a_server_that_does_not_answer_leaves_the_page_before_open(
    browser: Session, other: Session, site: Site
) -> None:
    before = site.watch("<button id=b onclick=\"report('alive')\">b</button>")
    browser.ok("open", before.url)
    call = opening_slowly(browser, site, 60, timeout=2)
    assert other.run("click", "#b").seconds < 2
    slow = call.outcome()
    assert (slow.exit_code, slow.meta["name"]) == (124, "TIMEOUT")
    assert "the page before is still open" in slow.stderr
    assert slow.seconds < 2 + RECOVERY_SECONDS
    browser.ok("click", "#b")
    before.wait_for("alive")
    after = browser.run("open", site.watch("<p id=p>quick</p>").url)
    print(f"after a slow page: next open {after.seconds:.2f} s")
    assert after.exit_code == 0
    assert after.seconds < RECOVERY_SECONDS
    assert browser.ok("get", "text", "#p")["text"] == "quick"


def test_cookies_survive_the_closing_of_a_page(browser: Session, site: Site) -> None:
    page = site.watch("<button id=b onclick=\"report(document.cookie); document.cookie = 'kept=yes'\">b</button>")
    browser.ok("open", page.url)
    browser.ok("click", "#b")
    assert browser.run("open", f"{site.origin}/slow/60", timeout=1).exit_code == 124
    browser.ok("open", page.url)
    browser.ok("click", "#b")
    assert page.reports == ["", "kept=yes"]


def test_a_call_that_times_out_behind_another_call_has_no_effect(browser: Session, site: Site) -> None:
    page = site.watch("<button id=b onclick=\"report('clicked')\">b</button>")
    browser.ok("open", page.url)
    long = InFlight(browser, "wait", 2500)
    wait_until(lambda: long.running and has_started(browser, "wait"), what="the wait")
    late = browser.run("click", "#b", timeout=1)
    assert late.exit_code == 124
    assert "it waited for another call of its session and did nothing" in late.stderr
    assert long.outcome().exit_code == 0
    assert page.reports == []
    browser.ok("click", "#b")
    page.wait_for("clicked")


def test_a_client_disconnect_cancels_its_call(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    arguments = {"session_id": browser.session_id, "argv": ["wait", "20000"], "timeout_sec": 30}
    params = {"name": "browser-shell", "arguments": arguments}
    connection = http.client.HTTPConnection("127.0.0.1", browser.server.port)
    connection.request(
        "POST",
        "/mcp",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
        {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **browser.server.authorization,
        },
    )
    wait_until(lambda: has_started(browser, "wait"), what="the call")
    connection.close()
    missing = browser.run("click", "#b")
    assert missing.exit_code == 1
    assert "NOTE: the page was closed because a call on it was cut short" in missing.stderr
    assert browser.ok("get", "url") == {"url": "about:blank"}
    after = browser.run("open", site.watch("<p id=p>mine again</p>").url)
    assert after.exit_code == 0
    assert after.seconds < RECOVERY_SECONDS
    assert browser.ok("get", "text", "#p")["text"] == "mine again"
