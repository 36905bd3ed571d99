"""wait in every mode, and what a wait that ends too late does to the page: nothing."""

from __future__ import annotations

import pytest

from support.pages import Site
from support.server import Outcome, Session

LATER = """<p id=leaves>x</p><p id=fades>x</p><p id=stays>stays</p><button id=b onclick="report('alive')">b</button>
<script>
setTimeout(() => {
  leaves.remove(); fades.style.display = 'none'
  document.body.insertAdjacentHTML('beforeend', '<b id=comes>has arrived</b>')
  history.pushState({}, '', '/moved/on?step=2')
  report('changed')
}, 600)</script>"""


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
def test_a_wait_ends_when_its_condition_comes_true(browser: Session, site: Site, argv: tuple[str, ...]) -> None:
    page = site.watch(LATER)
    browser.ok("open", page.url)
    assert page.reports == [], "the page changed before the wait began"
    browser.ok("wait", *argv)
    assert page.reports == ["changed"]


def test_a_condition_that_is_already_true_costs_no_wait(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p id=here>here</p>").url)
    for argv in (("#here",), ("--text", "here"), ("#gone", "--state", "hidden"), ("--load", "load"), (0,)):
        assert browser.run("wait", *argv).exit_code == 0
        assert browser.run("wait", *argv).seconds < 2, argv


@pytest.mark.parametrize("state", ["load", "domcontentloaded", "networkidle"])
def test_wait_for_a_load_state(browser: Session, site: Site, state: str) -> None:
    page = site.watch("<button id=b onclick=\"location = '/slow/0.5'\">b</button>")
    browser.ok("open", page.url)
    assert browser.ok("wait", "--load", state) == {"state": state}


def test_wait_for_milliseconds_takes_about_that_long(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    assert 0.7 <= browser.run("wait", 700).seconds < 4


@pytest.mark.parametrize(
    "argv",
    [("#never",), ("--text", "never"), ("--url", "**/never"), ("#stays", "--state", "hidden"), ("20000",), ("٥",)],
    ids=" ".join,
)
def test_a_wait_that_ends_too_late_leaves_the_page_untouched(
    browser: Session, site: Site, argv: tuple[str, ...]
) -> None:
    page = site.watch(LATER)
    browser.ok("open", page.url)
    outcome = browser.run("wait", *argv, timeout=1)
    assert timed_out(outcome)
    assert outcome.seconds < 3
    browser.ok("click", "#b")
    page.wait_for("alive")
    assert page.reports.count("changed") <= 1, "the page was loaded again"


def test_sleep_beyond_the_deadline_is_explained(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    outcome = browser.run("wait", 20_000, timeout=1)
    assert timed_out(outcome)
    assert "20000 ms do not fit into timeout_sec 1" in outcome.stderr


def test_an_element_that_comes_back_is_not_gone(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p id=p style='visibility:hidden'>x</p>").url)
    browser.ok("wait", "#p", "--state", "hidden")
    browser.ok("open", site.watch("<p id=p>x</p>").url)
    assert timed_out(browser.run("wait", "#p", "--state", "hidden", timeout=1))
