"""Keys and key combinations of `press`."""

from __future__ import annotations

import string

import pytest

from browser_shell.policy.keys import MODIFIERS, NAMED_KEYS, Key, key_of_character, parse_chord


@pytest.mark.parametrize(
    ("text", "modifiers", "key"),
    [
        ("Enter", (), Key(key="Enter", code="Enter", virtual_key_code=13)),
        ("Space", (), Key(key=" ", code="Space", virtual_key_code=32)),
        ("F12", (), Key(key="F12", code="F12", virtual_key_code=123)),
        ("a", (), Key(key="a", code="KeyA", virtual_key_code=65)),
        ("A", (), Key(key="A", code="KeyA", virtual_key_code=65, needs_shift=True)),
        ("$", (), Key(key="$", code="Digit4", virtual_key_code=52, needs_shift=True)),
        ("é", (), Key(key="é")),
        ("+", (), Key(key="+", code="Equal", virtual_key_code=187, needs_shift=True)),
        ("Control++", ("Control",), Key(key="+", code="Equal", virtual_key_code=187, needs_shift=True)),
        ("Control+Shift+ArrowLeft", ("Control", "Shift"), Key(key="ArrowLeft", code="ArrowLeft", virtual_key_code=37)),
        ("Shift", (), Key(key="Shift", code="ShiftLeft", virtual_key_code=16)),
        ("NumpadAdd", (), Key(key="+", code="NumpadAdd", virtual_key_code=107)),
        ("Numpad7", (), Key(key="7", code="Numpad7", virtual_key_code=103)),
    ],
)
def test_keys_and_combinations_are_parsed(text: str, modifiers: tuple[str, ...], key: Key) -> None:
    chord = parse_chord(text)
    assert (chord.modifiers, chord.key) == (modifiers, key)


def test_every_modifier_is_a_key_of_its_own() -> None:
    assert set(MODIFIERS) <= set(NAMED_KEYS)


def test_every_visible_ascii_character_has_a_code() -> None:
    for character in string.ascii_letters + string.digits + string.punctuation:
        key = key_of_character(character)
        assert key.key == character
        assert key.code
        assert key.virtual_key_code


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("esc", "Escape"),
        ("ENTER", "Enter"),
        ("Ctrl+a", "Control+a"),
        ("down", "ArrowDown"),
        ("cmd+Return", "Meta+Enter"),
    ],
)
def test_another_name_of_a_key_is_refused_with_the_name_to_write(text: str, instead: str) -> None:
    with pytest.raises(ValueError, match=f"write {instead.replace('+', '.')}$"):
        parse_chord(text)


@pytest.mark.parametrize("text", ["", "Foo", "12", "Control+", "Shift+Shift+a", "e\u0301"])
def test_an_unknown_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        parse_chord(text)
