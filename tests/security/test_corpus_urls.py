"""URLs of the attack corpus get the expected verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from ada_url import URL

from support.corpus_rows import load
from support.corpus_verdicts import verdict

ROWS = load("ssrf_urls.jsonl")


def test_the_corpus_is_not_empty() -> None:
    assert len(ROWS) > 100


@pytest.mark.promise("url:corpus")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_a_url_of_the_corpus_gets_its_verdict(row: dict[str, Any]) -> None:
    assert verdict(row)["verdict"] == row["expect"], row["why"]


@pytest.mark.promise("url:canonical")
@pytest.mark.parametrize("row", [row for row in ROWS if row["expect"] == "allow"], ids=lambda row: str(row["id"]))
def test_an_allowed_url_is_returned_in_canonical_form(row: dict[str, Any]) -> None:
    assert verdict(row)["href"] == URL(row["url"]).href
