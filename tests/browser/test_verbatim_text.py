"""Text arguments reach the field of the page byte for byte, even if they look like options or commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.pages import Site, WatchedPage
from support.server import Session

_CORPUS = Path(__file__).parent.parent / "data" / "corpus" / "argv_attacks.jsonl"
_MORE_TEXTS = (
    *("--cdp", "--clear", "--delay", "-p", "--session", "--json", "--config", "--init-script", "--state", "-h", "--"),
    *("--delay 5", "--clear now", "; rm -rf /", "$(touch /tmp/owned)", "`id`", "%s%n", "\\n", "{{7*7}}", "null"),
    *("two\nlines", "tab\tbetween", "\nleading newline", "trailing newline\n", "\n\n"),
    *("\N{SNOWMAN}", "\U0001f469\u200d\U0001f4bb", "e\u0301", "\u05e9\u05dc\u05d5\u05dd", "\u200b", "x" * 2000, " "),
)


def _texts() -> list[str]:
    rows = [json.loads(line) for line in _CORPUS.read_text(encoding="utf-8").splitlines() if line.strip()]
    corpus = [row["verbatim"]["value"] for row in rows if "verbatim" in row]
    assert len(corpus) >= 15, "the corpus lost its verbatim rows"
    return list(dict.fromkeys((*corpus, *_MORE_TEXTS)))


TEXTS = _texts()


@pytest.fixture
def page(browser: Session, site: Site) -> WatchedPage:
    # The page reports the value itself, so the test does not depend on a command that reads it.
    watched = site.watch(
        "<textarea id=q></textarea><button id=clear onclick=\"q.value = ''\">clear</button>"
        '<button id=send onclick="report(q.value)">send</button>'
    )
    browser.ok("open", watched.url)
    return watched


@pytest.mark.promise("text:fill-is-verbatim")
def test_fill_delivers_every_text_byte_for_byte(browser: Session, page: WatchedPage) -> None:
    for text in TEXTS:
        browser.ok("fill", "#q", text)
        browser.ok("click", "#send")
    assert page.reports == TEXTS


@pytest.mark.promise("text:type-is-verbatim")
def test_type_delivers_every_text_byte_for_byte(browser: Session, page: WatchedPage) -> None:
    for text in TEXTS:
        browser.ok("click", "#clear")
        browser.ok("type", "#q", text)
        browser.ok("click", "#send")
    assert page.reports == TEXTS


@pytest.mark.promise("text:flags-have-no-effect")
def test_flags_in_a_text_do_not_affect_the_session(browser: Session, page: WatchedPage) -> None:
    daemons = browser.server.daemons()
    for text in ("--session", "--action-policy", "--cdp", "--config", "--namespace", "--idle-timeout", "--debug"):
        browser.ok("fill", "#q", text)
        browser.ok("type", "#q", text)
    assert browser.server.daemons() == daemons
    assert browser.ok("get", "url")["url"] == page.url


def test_a_prompt_receives_every_text_unchanged(browser: Session, site: Site) -> None:
    page = site.watch("<button id=b onclick=\"report(prompt('?', 'default'))\">b</button>")
    browser.ok("open", page.url)
    answers = ["Ada", "--cdp", "; rm -rf /", "\N{SNOWMAN}", ""]
    for text in answers:
        browser.ok("click", "#b")
        browser.ok("dialog", "accept", text)
        page.wait_for(text)
    assert page.reports == answers
