"""Every example of the skill works as written, and every subcommand has one."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_shell.core.errors import ErrorCode
from browser_shell.policy.commands import COMMANDS, Shape
from support.pages import running_site
from support.server import Outcome, running_server

SKILL = Path(__file__).parent.parent.parent / "skills" / "browser-shell" / "SKILL.md"
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


def examples() -> list[list[str]]:
    """The first call of the document, then every argv of the table of commands, in order."""
    text = SKILL.read_text(encoding="utf-8")
    first = json.loads(re.findall(r"^```json\n(.*?)^```", text, re.M | re.S)[0])
    table = text.partition("## Commands")[2].partition("## Errors")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    lines = [shlex.split(code) for row in rows for code in re.findall(r"`([^`]+)`", row)]
    return [first["argv"], *first["then"], *(argv for argv in lines if argv[0] in COMMANDS), ["close"]]


@pytest.fixture(scope="module")
def run_results() -> Iterator[tuple[list[Any], list[tuple[list[str], Outcome]]]]:
    """Run all examples in one session. Yield the reports of the page and the outcome of each example."""
    with running_site() as site:
        site.add("/order", site.report_script("/order") + ORDER)
        site.add("/details", "<title>Details</title>")
        site.add("/terms", "<title>Terms</title>")
        policy = {"open": {"unsafe_resolve": {"shop.example": f"127.0.0.1:{site.port}"}}}
        with running_server(policy) as server:
            session = server.session("order-1")
            yield site.reports["/order"], [(argv, session.run(*argv)) for argv in examples()]


def test_every_example_works(run_results: tuple[list[Any], list[tuple[list[str], Outcome]]]) -> None:
    wrong = [(argv, outcome.stderr) for argv, outcome in run_results[1] if outcome.exit_code != 0]
    assert wrong == []


def test_the_examples_reach_the_page(run_results: tuple[list[Any], list[tuple[list[str], Outcome]]]) -> None:
    messages = run_results[0]
    assert {"name": "Ada Lovelace", "size": "medium", "gift": False, "notes": " --thanks"} in messages
    for message in ("double", "hover", "terms 100", False, "A better name"):
        assert message in messages, message


def test_the_snapshot_has_refs_as_described(run_results: tuple[list[Any], list[tuple[list[str], Outcome]]]) -> None:
    (look, *_) = [outcome for argv, outcome in run_results[1] if argv == ["snapshot", "-i"]]
    assert re.search(r'- textbox "Name" \[ref=e\d+\]', look.data["snapshot"])


def test_every_subcommand_has_an_example() -> None:
    used = {tuple(argv[:2]) for argv in examples()}
    for name, shape in COMMANDS.items():
        if isinstance(shape, Shape):
            assert any(argv[0] == name for argv in used), name
        else:
            for word in shape:
                assert (name, word) in used, (name, word)


def test_every_option_is_named() -> None:
    text = SKILL.read_text(encoding="utf-8")
    for name, shape in COMMANDS.items():
        for option in shape.options if isinstance(shape, Shape) else ():
            assert any(spelling in text for spelling in option.spellings), (name, option.name)


def test_the_table_of_errors_has_the_right_exit_codes() -> None:
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \| (\d+) \|", SKILL.read_text(encoding="utf-8"), re.M)
    listed = {word: int(exit_code) for words, exit_code in rows for word in re.findall(r"`([A-Z_]+)`", words)}
    assert len(listed) >= 8
    assert listed == {word: ErrorCode[word].exit_code for word in listed}


def test_skill_is_short_and_has_a_description() -> None:
    text = SKILL.read_text(encoding="utf-8")
    lines = text.splitlines()
    # The limit is 1,200 cl100k tokens, which a conformance test counts.
    assert len(text) <= 4_100
    assert lines[0] == "---"
    assert lines[1] == "name: browser-shell"
    assert lines[2].startswith("description: ")
