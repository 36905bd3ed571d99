"""Calls of the attack corpus get the expected verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from browser_shell.tools.browser_shell import BrowserShellTool
from support.corpus_rows import load
from support.corpus_verdicts import verdict

ROWS = [*load("argv_attacks.jsonl"), *load("step_attacks.jsonl")]
ACCEPTED_EXCEPTIONS = {
    "ARGV-0032": "get html: the page's source costs many tokens and carries injections; snapshot and get text serve",
    "ARGV-0034": "find with actions of its own: a second selector language; find TEXT and refs serve",
    "ARGV-0035": "find with actions: as above",
    "ARGV-0055": "frame: changes hidden state between calls; snapshot shows frames",
}
"""Rows of level `should` with another verdict here, each with its reason."""


def test_the_corpus_is_not_empty() -> None:
    assert len(ROWS) > 250


@pytest.mark.promise("argv:corpus")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_a_call_of_the_corpus_gets_its_verdict(row: dict[str, Any]) -> None:
    excepted = row["id"] in ACCEPTED_EXCEPTIONS
    assert not excepted or row["level"] != "must"
    assert (verdict(row)["verdict"] == row["expect"]) is not excepted, row["why"]


@pytest.mark.promise("argv:verbatim")
@pytest.mark.parametrize("row", [row for row in ROWS if "verbatim" in row], ids=lambda row: str(row["id"]))
def test_free_text_is_unchanged(row: dict[str, Any]) -> None:
    plan = BrowserShellTool().plan(row["arguments"])
    # Index 0 of argv is the subcommand, which is not an operand of the plan.
    assert plan.operands[row["verbatim"]["index"] - 1] == row["verbatim"]["value"]
    assert not plan.options
