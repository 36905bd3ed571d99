"""Every example of the skill works as written, and every subcommand has one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browser_shell.core.errors import ErrorCode
from browser_shell.policy.commands import COMMANDS, Shape
from support.pages import running_site
from support.server import Session, running_server

SKILL = Path(__file__).parent.parent.parent / "skills" / "browser-shell" / "SKILL.md"
NOT_EXECUTED_YET = {
    "drag",
    "find",
    "select-text",
    ("get", "value"),
    ("get", "count"),
    ("get", "attr"),
    "at",
    "from",
    "to",
}
"""Subcommands, words and options that the grammar has and no page executes yet. The skill does not describe them."""
RESULT_KEYS = {"session_id", "exit_code", "stdout", "stderr"}

ORDER = """<title>Order</title><h1>Order</h1>
<form onsubmit="event.preventDefault(); send.disabled = true; setTimeout(() => {
  busy.hidden = true; summary.textContent = 'Thank you, ' + person.value; send.disabled = false
  report({name: person.value, size: size.value, gift: gift.checked, notes: notes.value}) }, 200)">
<label>Name <input id=person></label>
<label>Size <select id=size><option value=small>Small<option value=medium>Medium<option value=large>Large
</select></label>
<label><input type=checkbox id=gift> Gift</label><label>Notes <textarea id=notes></textarea></label>
<button id=send>Send</button></form>
<p id=busy>Not sent yet</p><p id=summary ondblclick="report('double')">Nothing</p>
<span id=help onmouseover="report('hover')">?</span><a id=details target=_blank href="/details">Details</a>
<button id=cancel onclick="report(confirm('Cancel the order?'))">Cancel</button>
<button id=rename onclick="report(prompt('New name?', ''))">Rename</button>
<div id=terms style="height:60px;overflow:auto" onscroll="report('terms ' + this.scrollTop)">
<div style="height:900px"></div></div>
<div style="height:3000px"></div>"""


@dataclass(frozen=True)
class Example:
    argv: list[str]
    fails: str

    def __str__(self) -> str:
        return " ".join(self.argv)


def blocks() -> Iterator[tuple[str, Any]]:
    for words, body in re.findall(r"^```json *(.*?)\n(.*?)^```", SKILL.read_text(encoding="utf-8"), re.M | re.S):
        yield words, json.loads(body)


def examples() -> list[Example]:
    found = []
    for words, value in blocks():
        if isinstance(value, dict) and value.keys() >= RESULT_KEYS:
            continue
        argv = value["argv"] if isinstance(value, dict) else value
        found.append(Example(argv=argv, fails=words.removeprefix("fails ")))
    return found


@pytest.fixture(scope="module")
def ran() -> Iterator[tuple[list[Any], list[tuple[Example, str]]]]:
    """All examples in the order of the document, in one session, at the shop that they talk about."""
    with running_site() as site:
        site.add("/order", site.report_script("/order") + ORDER)
        site.add("/details", "<title>Details</title>")
        site.add("/terms", "<title>Terms</title>")
        policy = {"open": {"unsafe_resolve": {"shop.example": f"127.0.0.1:{site.port}"}}}
        with running_server(policy) as server:
            session = server.session("order-1")
            yield site.reports["/order"], [(example, _verdict(session, example)) for example in examples()]


def _verdict(session: Session, example: Example) -> str:
    outcome = session.run(*example.argv)
    word = outcome.stderr.partition(":")[0] if outcome.exit_code else ""
    assert (outcome.exit_code == 0) == (word == ""), outcome
    if word:
        assert outcome.exit_code == ErrorCode[word].exit_code
        assert outcome.stdout == ""
    else:
        json.loads(outcome.stdout)
    return word


def test_every_example_does_what_the_skill_describes(ran: tuple[list[Any], list[tuple[Example, str]]]) -> None:
    wrong = [(str(example), word) for example, word in ran[1] if word != example.fails]
    assert wrong == []


def test_the_examples_reach_the_page(ran: tuple[list[Any], list[tuple[Example, str]]]) -> None:
    messages = ran[0]
    assert messages[0] == {"name": "Ada Lovelace", "size": "medium", "gift": True, "notes": ""}
    for seen in ("double", "hover", "terms 100", False, "A better name"):
        assert seen in messages, seen


def test_every_subcommand_has_an_example() -> None:
    used = {tuple(example.argv[:2]) for example in examples() if not example.fails}
    for name, shape in COMMANDS.items():
        if isinstance(shape, Shape):
            assert name in NOT_EXECUTED_YET or any(argv[0] == name for argv in used), name
        else:
            for word in shape:
                assert (name, word) in used | NOT_EXECUTED_YET, (name, word)


def test_every_option_is_named() -> None:
    text = SKILL.read_text(encoding="utf-8")
    for name, shape in COMMANDS.items():
        if isinstance(shape, Shape) and name not in NOT_EXECUTED_YET:
            for option in shape.options:
                if option.name in NOT_EXECUTED_YET:
                    continue
                assert any(f"{spelling}" in text for spelling in option.spellings), (name, option.name)


def test_the_table_of_errors_has_the_right_exit_codes() -> None:
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \| (\d+) \|", SKILL.read_text(encoding="utf-8"), re.M)
    listed = {word: int(exit_code) for words, exit_code in rows for word in re.findall(r"`([A-Z_]+)`", words)}
    assert len(listed) >= 10
    assert listed == {word: ErrorCode[word].exit_code for word in listed}


def test_skill_is_short_and_has_a_description() -> None:
    lines = SKILL.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 250
    assert lines[0] == "---"
    assert lines[1] == "name: browser-shell"
    assert lines[2].startswith("description: ")
