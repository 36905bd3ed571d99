"""Comparison of a text with the value that a page made of it."""

from __future__ import annotations

import pytest

from browser_shell.browser.page.fields import has_same_characters


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5551234567", "(555) 123-4567"),
        ("5551234567", "+1 (555) 123-4567"),
        ("abc", "ABC"),
        ("49.9", "49.90"),
        ("1000", "1,000.00"),
        (" a@b.example ", "a@b.example"),
    ],
)
def test_a_formatted_text_has_the_same_characters(text: str, value: str) -> None:
    assert has_same_characters(text, value)


@pytest.mark.parametrize(
    ("text", "value"), [("12a3", "123"), ("abcdef", "abc"), ("abc", ""), ("abc", "cba"), ("...", ""), ("", "old")]
)
def test_a_text_that_lost_characters_is_not_the_same(text: str, value: str) -> None:
    assert not has_same_characters(text, value)
