"""The keys of `press`: names, physical codes and virtual key codes of a US keyboard."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

MODIFIERS = MappingProxyType({"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8})
"""Names of modifier keys, with their bits in `Input.dispatchKeyEvent` of the DevTools protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key as a page sees it. Characters that a US keyboard lacks have no code."""

    key: str
    """`KeyboardEvent.key` (UI Events KeyboardEvent key Values)."""
    code: str = ""
    """`KeyboardEvent.code` (UI Events KeyboardEvent code Values)."""
    virtual_key_code: int = 0
    """The virtual key code of Windows, which pages see as `keyCode`."""
    needs_shift: bool = False
    """Whether a US keyboard types the character with the Shift key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chord:
    """A key with the modifiers that are held while it is pressed."""

    modifiers: tuple[str, ...]
    key: Key


def _named(name: str, virtual_key_code: int, *, key: str = "", code: str = "") -> tuple[str, Key]:
    return name, Key(key=key or name, code=code or name, virtual_key_code=virtual_key_code)


_NUMPAD_SIGNS = (("Multiply", "*", 106), ("Add", "+", 107), ("Subtract", "-", 109), ("Decimal", ".", 110))

NAMED_KEYS = MappingProxyType(
    dict(
        (
            *(_named("Enter", 13), _named("Tab", 9), _named("Escape", 27), _named("Backspace", 8)),
            *(_named("Delete", 46), _named("Insert", 45), _named("Space", 32, key=" ")),
            *(_named("Home", 36), _named("End", 35), _named("PageUp", 33), _named("PageDown", 34)),
            *(_named("ArrowLeft", 37), _named("ArrowUp", 38), _named("ArrowRight", 39), _named("ArrowDown", 40)),
            *(_named(f"F{number}", 111 + number) for number in range(1, 13)),
            *(_named("Shift", 16, code="ShiftLeft"), _named("Control", 17, code="ControlLeft")),
            *(_named("Alt", 18, code="AltLeft"), _named("Meta", 91, code="MetaLeft")),
            *(_named("CapsLock", 20), _named("NumLock", 144), _named("ScrollLock", 145), _named("Pause", 19)),
            *(_named("PrintScreen", 44), _named("ContextMenu", 93)),
            *(_named(f"Numpad{digit}", 96 + digit, key=str(digit)) for digit in range(10)),
            *(_named(f"Numpad{name}", code, key=sign) for name, sign, code in _NUMPAD_SIGNS),
            *(_named("NumpadDivide", 111, key="/"), _named("NumpadEnter", 13, key="Enter")),
        )
    )
)
"""Keys that are pressed by name."""

_SIGNS = (
    *(
        ("Semicolon", 186, ";:"),
        ("Equal", 187, "=+"),
        ("Comma", 188, ",<"),
        ("Minus", 189, "-_"),
        ("Period", 190, ".>"),
    ),
    *(("Slash", 191, "/?"), ("Backquote", 192, "`~"), ("BracketLeft", 219, "[{"), ("Backslash", 220, "\\|")),
    *(("BracketRight", 221, "]}"), ("Quote", 222, "'\"")),
    *(
        (f"Digit{plain}", ord(plain), plain + shifted)
        for plain, shifted in zip("0123456789", ")!@#$%^&*(", strict=True)
    ),
    *((f"Key{letter}", ord(letter), letter.lower() + letter) for letter in map(chr, range(ord("A"), ord("Z") + 1))),
)
"""Code, virtual key code, and the characters of the key without and with Shift."""
_CHARACTERS = {
    character: Key(key=character, code=code, virtual_key_code=virtual_key_code, needs_shift=bool(shift))
    for code, virtual_key_code, characters in _SIGNS
    for shift, character in enumerate(characters)
}

_OTHER_NAMES = {
    **{name.lower(): name for name in NAMED_KEYS},
    **{"esc": "Escape", "return": "Enter", "del": "Delete", "ins": "Insert", "spacebar": "Space", "pgup": "PageUp"},
    **{"pgdn": "PageDown", "left": "ArrowLeft", "up": "ArrowUp", "right": "ArrowRight", "down": "ArrowDown"},
    **{"ctrl": "Control", "cmd": "Meta", "command": "Meta", "win": "Meta", "option": "Alt"},
}
"""Names in lower case that are refused, with the name to write instead."""


def parse_chord(text: str) -> Chord:
    """Parse a key such as `Enter`, `a` or `Control+Shift+a`. Raises: ValueError with the rule."""
    modifiers: list[str] = []
    name = text
    while True:
        first, plus, rest = name.partition("+")
        if not plus or not rest or first not in MODIFIERS:
            break
        modifiers.append(first)
        name = rest
    if len(set(modifiers)) < len(modifiers):
        raise ValueError("must not repeat a modifier")
    return Chord(modifiers=tuple(modifiers), key=_key(name))


def key_of_character(character: str) -> Key:
    """Return the key that types a character."""
    return _CHARACTERS.get(character) or Key(key=character)


def with_shift(key: Key) -> Key:
    """Return what a US keyboard types with the same key while Shift is held: B for b, ! for 1."""
    return next((other for other in _CHARACTERS.values() if other.code == key.code and other.needs_shift), key)


def _key(name: str) -> Key:
    if name in NAMED_KEYS:
        return NAMED_KEYS[name]
    if len(name) == 1 and name.isprintable() and not name.isspace():
        return key_of_character(name)
    written = "+".join(_OTHER_NAMES.get(part.lower(), part) for part in name.split("+"))
    hint = f"; write {written}" if written != name else ""
    raise ValueError(f"must be one character, or a key such as Enter, Tab, ArrowDown or Control+a{hint}")
