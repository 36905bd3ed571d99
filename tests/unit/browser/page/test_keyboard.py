"""Keys and texts as input requests."""

from __future__ import annotations

import pytest

from browser_shell.browser.page.keyboard import InputRequest, chord_requests, typing_requests
from browser_shell.policy.keys import parse_chord


def described(requests: list[InputRequest]) -> list[str]:
    """Write each request as type, key, text and modifiers; an insertion as its text."""
    return [
        f"insert {request.params['text']}"
        if request.method == "Input.insertText"
        else " ".join(
            str(part)
            for part in (
                request.params["type"],
                request.params["key"],
                *([repr(request.params["text"])] if "text" in request.params else []),
                request.params["modifiers"],
            )
        )
        for request in requests
    ]


@pytest.mark.parametrize(
    ("chord", "expected"),
    [
        ("a", ["keyDown a 'a' 0", "keyUp a 0"]),
        ("A", ["keyDown A 'A' 0", "keyUp A 0"]),
        ("Enter", ["keyDown Enter '\\r' 0", "keyUp Enter 0"]),
        ("Escape", ["rawKeyDown Escape 0", "keyUp Escape 0"]),
        ("Tab", ["rawKeyDown Tab 0", "keyUp Tab 0"]),
        ("Space", ["keyDown   ' ' 0", "keyUp   0"]),
        ("Numpad5", ["keyDown 5 '5' 0", "keyUp 5 0"]),
        ("Shift", ["rawKeyDown Shift 8", "keyUp Shift 0"]),
        ("Shift+b", ["rawKeyDown Shift 8", "keyDown B 'B' 8", "keyUp B 8", "keyUp Shift 0"]),
        ("Shift+1", ["rawKeyDown Shift 8", "keyDown ! '!' 8", "keyUp ! 8", "keyUp Shift 0"]),
        ("Shift+Tab", ["rawKeyDown Shift 8", "rawKeyDown Tab 8", "keyUp Tab 8", "keyUp Shift 0"]),
        ("Control+a", ["rawKeyDown Control 2", "rawKeyDown a 2", "keyUp a 2", "keyUp Control 0"]),
        (
            "Control+Shift+a",
            *[
                [
                    *("rawKeyDown Control 2", "rawKeyDown Shift 10", "rawKeyDown A 10"),
                    *("keyUp A 10", "keyUp Shift 2", "keyUp Control 0"),
                ]
            ],
        ),
        ("é", ["insert é"]),
        ("Control+é", ["rawKeyDown Control 2", "rawKeyDown é 2", "keyUp é 2", "keyUp Control 0"]),
    ],
)
def test_a_chord_becomes_key_events(chord: str, expected: list[str]) -> None:
    assert described(chord_requests(parse_chord(chord))) == expected


def test_typed_text_is_one_key_per_character() -> None:
    assert described(typing_requests("a B")) == [
        *("keyDown a 'a' 0", "keyUp a 0"),
        *("keyDown   ' ' 0", "keyUp   0"),
        *("keyDown B 'B' 0", "keyUp B 0"),
    ]


def test_characters_without_a_key_are_inserted_together() -> None:
    """A tab is text here: the Tab key would move the focus."""
    assert described(typing_requests("é\tü1")) == ["insert é\tü", "keyDown 1 '1' 0", "keyUp 1 0"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_line_end_is_the_enter_key(line_end: str) -> None:
    assert described(typing_requests(line_end)) == ["keyDown Enter '\\r' 0", "keyUp Enter 0"]


def test_keys_have_codes_and_locations() -> None:
    shift, letter = chord_requests(parse_chord("Shift+b"))[:2]
    assert (shift.params["code"], shift.params["location"]) == ("ShiftLeft", 1)
    assert (letter.params["code"], letter.params["windowsVirtualKeyCode"]) == ("KeyB", 66)
    assert chord_requests(parse_chord("NumpadEnter"))[0].params["isKeypad"] is True
