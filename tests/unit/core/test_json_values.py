"""The strict JSON parser."""

from __future__ import annotations

import pytest

from browser_shell.core.json_values import JsonValue, parse_json


@pytest.mark.parametrize(
    ("text", "value"), [("null", None), ("[1, 2.5, true]", [1, 2.5, True]), ('{"a": {"b": "ä"}}', {"a": {"b": "ä"}})]
)
def test_json_is_parsed(text: str, value: JsonValue) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        '{"a": 1, "a": 1}',
        '[{"b": {"a": 1, "a": 2}}]',
        "[" * 100_000,
    ],
    ids=range(9),
)
def test_text_that_parsers_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
