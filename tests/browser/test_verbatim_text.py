"""Text is text: whatever it looks like, it arrives byte for byte in the page's field and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.pages import Site, WatchedPage
from support.server import Session

_CORPUS = Path(__file__).parent.parent / "data" / "corpus" / "argv_attacks.jsonl"
_OWN = (
    *("--cdp", "--clear", "--delay", "-p", "--session", "--json", "--config", "--init-script", "--state", "-h", "--"),
    *("--delay 5", "--clear now", "; rm -rf /", "$(touch /tmp/owned)", "`id`", "%s%n", "\\n", "{{7*7}}", "null"),
    *("two\nlines", "tab\tbetween", "\nleading newline", "trailing newline\n", "\n\n"),
    *("\N{SNOWMAN}", "\U0001f469\u200d\U0001f4bb", "e\u0301", "\u05e9\u05dc\u05d5\u05dd", "\u200b", "x" * 2000, " "),
)


def _texts() -> list[str]:
    rows = [json.loads(line) for line in _CORPUS.read_text(encoding="utf-8").splitlines() if line.strip()]
    corpus = [row["verbatim"]["value"] for row in rows if "verbatim" in row]
    assert len(corpus) >= 15, "the corpus lost its verbatim rows"
    return list(dict.fromkeys((*corpus, *_OWN)))


TEXTS = _texts()


@pytest.fixture
def page(browser: Session, site: Site) -> WatchedPage:
    # The page itself sends the field's value as JSON, so no command of the tool can change it on the way.
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
def test_flags_in_a_text_leave_the_session_where_it_was(browser: Session, page: WatchedPage) -> None:
    daemons = browser.server.daemons()
    for text in ("--session", "--action-policy", "--cdp", "--config", "--namespace", "--idle-timeout", "--debug"):
        browser.ok("fill", "#q", text)
        browser.ok("type", "#q", text)
    assert browser.server.daemons() == daemons
    assert browser.ok("get", "url")["url"] == page.url


def test_a_prompt_is_answered_with_any_text(browser: Session, site: Site) -> None:
    asking = site.watch("<button id=b onclick=\"report(prompt('?', 'default'))\">b</button>")
    browser.ok("open", asking.url)
    answers = ["Ada", "--cdp", "; rm -rf /", "\N{SNOWMAN}", ""]
    for text in answers:
        browser.ok("click", "#b")
        browser.ok("dialog", "accept", text)
        asking.wait_for(text)
    assert asking.reports == answers
