"""Errors of fields: each has a code and advice for its case."""

from __future__ import annotations

import pytest

from browser_shell.browser.page.field_errors import field_error, not_kept
from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject


@pytest.mark.parametrize(
    ("found", "code", "advice"),
    [
        ({"problem": "gone"}, ErrorCode.ELEMENT_GONE, ""),
        ({"problem": "invisible"}, ErrorCode.NOT_EDITABLE, "shows it"),
        ({"problem": "disabled", "by": ""}, ErrorCode.NOT_EDITABLE, "enables it"),
        ({"problem": "read-only"}, ErrorCode.NOT_EDITABLE, "click @e3"),
        ({"problem": "inert"}, ErrorCode.NOT_EDITABLE, "activates it"),
        ({"problem": "modal", "by": "<dialog#d>"}, ErrorCode.ELEMENT_COVERED, "close the dialog"),
        ({"problem": "changed on focus"}, ErrorCode.NOT_EDITABLE, "snapshot"),
        ({"problem": "kind", "kind": "checkbox"}, ErrorCode.NOT_EDITABLE, "check @e3"),
        ({"problem": "kind", "kind": "radio"}, ErrorCode.NOT_EDITABLE, "check @e3"),
        ({"problem": "kind", "kind": "select"}, ErrorCode.NOT_EDITABLE, "select @e3 VALUE"),
        ({"problem": "kind", "kind": "button"}, ErrorCode.NOT_EDITABLE, "click @e3"),
        ({"problem": "kind", "kind": "file"}, ErrorCode.NOT_EDITABLE, "without the file"),
        ({"problem": "kind", "kind": "other", "inside": []}, ErrorCode.NOT_EDITABLE, "snapshot -i"),
        ({"problem": "kind", "kind": "other", "inside": ["<input#a>"]}, ErrorCode.NOT_EDITABLE, "<input#a>"),
        ({"problem": "frame"}, ErrorCode.NOT_EDITABLE, "field in the frame"),
        ({"problem": "typing", "type": "range"}, ErrorCode.NOT_EDITABLE, "fill @e3"),
        ({"problem": "focus", "on": "<input#b>"}, ErrorCode.COMMAND_FAILED, "<input#b>"),
        ({"problem": "focus", "on": ""}, ErrorCode.COMMAND_FAILED, "click @e3"),
        ({"problem": "replaced on focus"}, ErrorCode.ELEMENT_GONE, "new snapshot"),
        ({"problem": "one line"}, ErrorCode.COMMAND_FAILED, "press Enter"),
        ({"problem": "too long", "most": 3, "length": 6}, ErrorCode.COMMAND_FAILED, "Shorten"),
        ({"problem": "value", "accepted": "a date", "type": "date"}, ErrorCode.COMMAND_FAILED, "It takes a date"),
    ],
)
def test_each_problem_has_a_code_and_advice(found: JsonObject, code: ErrorCode, advice: str) -> None:
    error = field_error("@e3", found)
    assert error.code is code
    assert advice in error.advice
    assert "@e3" in error.public_message


def test_an_error_about_lost_text_shows_the_value_of_the_field() -> None:
    assert "'123'" in not_kept("#n", "123", instead="type #n TEXT").public_message


def test_an_error_about_lost_text_does_not_show_a_secret() -> None:
    assert "'" not in not_kept("#pin", None, instead="type #pin TEXT").public_message


def test_a_long_value_is_cut_in_messages() -> None:
    assert len(not_kept("#n", "x" * 5_000, instead="").public_message) < 400
