"""wait in each mode. A wait that times out does not affect the page."""

from __future__ import annotations

import pytest

from support.in_flight import InFlight, has_started
from support.pages import Site, wait_until
from support.server import Outcome, Session
from support.time_limits import UNBLOCKED_SECONDS


def timed_out(outcome: Outcome) -> bool:
    return (outcome.exit_code, outcome.meta.get("name")) == (124, "TIMEOUT")


@pytest.mark.parametrize(
    "argv",
    [
        ("#comes",),
        ("#comes", "--state", "visible"),
        ("--text", "has arrived"),
        ("--url", "**/moved/*"),
        ("#leaves", "--state", "hidden"),
        ("#fades", "--state", "hidden"),
    ],
    ids=" ".join,
)
def test_a_wait_ends_when_its_condition_becomes_true(browser: Session, site: Site, argv: tuple[str, ...]) -> None:
    response = site.hold()
    page = site.watch(
        f"""<p id=leaves>x</p><p id=fades>x</p><script>
        fetch('{response.url}').then(() => {{
          report('changed')
          leaves.remove(); fades.style.display = 'none'
          document.body.insertAdjacentHTML('beforeend', '<b id=comes>has arrived</b>')
          history.pushState({{}}, '', '/moved/on?step=2')
        }})</script>"""
    )
    browser.ok("open", page.url)
    call = InFlight(browser, "wait", *argv)
    wait_until(lambda: has_started(browser, "wait"), what="the wait")
    assert call.running
    response.release()
    assert call.outcome().exit_code == 0
    assert page.reports == ["changed"]


def test_a_wait_for_a_true_condition_ends_at_once(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p id=here>here</p>").url)
    for argv in (("#here",), ("--text", "here"), ("#missing", "--state", "hidden"), ("--load", "load"), (0,)):
        outcome = browser.run("wait", *argv)
        assert outcome.exit_code == 0
        assert outcome.seconds < UNBLOCKED_SECONDS, argv


@pytest.mark.parametrize("state", ["load", "domcontentloaded", "networkidle"])
def test_wait_returns_the_load_state(browser: Session, site: Site, state: str) -> None:
    page = site.watch("<button id=b onclick=\"location = '/slow/0.5'\">b</button>")
    browser.ok("open", page.url)
    assert browser.ok("wait", "--load", state) == {"state": state}


def test_a_wait_for_milliseconds_takes_that_long(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    assert 0.7 <= browser.run("wait", 700).seconds < UNBLOCKED_SECONDS


@pytest.mark.parametrize(
    "argv",
    [("#never",), ("--text", "never"), ("--url", "**/never"), ("#stays", "--state", "hidden"), ("20000",), ("٥",)],
    ids=" ".join,
)
def test_a_wait_that_times_out_does_not_affect_the_page(browser: Session, site: Site, argv: tuple[str, ...]) -> None:
    page = site.watch(
        "<p id=stays>x</p><button id=b onclick=\"report('click')\">b</button><script>report('load')</script>"
    )
    browser.ok("open", page.url)
    outcome = browser.run("wait", *argv, timeout=1)
    assert timed_out(outcome)
    assert outcome.seconds < UNBLOCKED_SECONDS
    browser.ok("click", "#b")
    page.wait_for("click")
    assert page.reports == ["load", "click"]


def test_a_wait_longer_than_the_deadline_is_refused_with_both_durations(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    outcome = browser.run("wait", 20_000, timeout=1)
    assert timed_out(outcome)
    assert "20000 ms exceed timeout_sec 1" in outcome.stderr


def test_a_visible_element_is_not_hidden_because_an_earlier_page_hid_it(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p id=p style='visibility:hidden'>x</p>").url)
    browser.ok("wait", "#p", "--state", "hidden")
    browser.ok("open", site.watch("<p id=p>x</p>").url)
    assert timed_out(browser.run("wait", "#p", "--state", "hidden", timeout=1))
