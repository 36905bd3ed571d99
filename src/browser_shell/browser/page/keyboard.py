"""Keys: `press`, and the key events of text that is typed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.json_values import JsonObject
from browser_shell.policy.keys import MODIFIERS, NAMED_KEYS, Chord, Key, key_of_character, parse_chord, with_shift

_TEXTS = {"Enter": "\r", "Tab": ""}
"""Texts that named keys type, where they differ from `Key.key`."""
_LEFT = 1
"""`KeyboardEvent.location` of the left key of a pair, for example of the left Shift key."""

SELECT_ALL = parse_chord("Control+a")
TO_END = parse_chord("Control+End")
DELETE = parse_chord("Delete")
SPACE = parse_chord("Space")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest:
    """One DevTools request of the domain `Input`."""

    method: str
    params: JsonObject


async def press(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `press KEY`: press and release a key in the element that has the focus."""
    await send_input(page, chord_requests(parse_chord(plan.operands[0])))
    return {"pressed": plan.operands[0]}


async def send_input(page: Page, requests: Sequence[InputRequest]) -> None:
    """Send input in order, and wait until the page has handled the last event. The page may be replaced by then."""
    if not requests:
        return
    *others, last = requests
    for request in others:
        page.post(request.method, request.params)
    try:
        await page.send(last.method, last.params)
    except DevToolsError:
        return  # The input closed or replaced the page.


def chord_requests(chord: Chord) -> list[InputRequest]:
    """Return the events of a key that is pressed while its modifiers are held."""
    if not chord.modifiers and not chord.key.code:
        return [insertion(chord.key.key)]  # No key of the keyboard types this character.
    held = 0
    requests = []
    for name in chord.modifiers:
        held |= MODIFIERS[name]
        requests.append(_key_event(NAMED_KEYS[name], "", held, down=True))
    key = with_shift(chord.key) if "Shift" in chord.modifiers else chord.key
    text = _text_of(key) if not held & ~MODIFIERS["Shift"] else ""
    own = MODIFIERS.get(key.key, 0)
    requests += [_key_event(key, text, held | own, down=True), _key_event(key, text, held, down=False)]
    for name in reversed(chord.modifiers):
        held &= ~MODIFIERS[name]
        requests.append(_key_event(NAMED_KEYS[name], "", held, down=False))
    return requests


def typing_requests(text: str) -> list[InputRequest]:
    """Return the events of a text that is typed. Characters that no key types are inserted without key events."""
    return [
        request
        for has_keys, characters in groupby(text.replace("\r\n", "\n"), key=_has_key)
        for request in (_key_strokes(characters) if has_keys else [insertion("".join(characters))])
    ]


def insertion(text: str) -> InputRequest:
    """Return the request that inserts text at the caret."""
    return InputRequest(method="Input.insertText", params={"text": text})


def _key_strokes(characters: Iterator[str]) -> Iterator[InputRequest]:
    for character in characters:
        key = _key_for(character)
        yield _key_event(key, _text_of(key), 0, down=True)
        yield _key_event(key, _text_of(key), 0, down=False)


def _has_key(character: str) -> bool:
    return character in "\r\n " or bool(key_of_character(character).code)


def _key_for(character: str) -> Key:
    names = {"\n": "Enter", "\r": "Enter", " ": "Space"}
    return NAMED_KEYS[names[character]] if character in names else key_of_character(character)


def _text_of(key: Key) -> str:
    """Return the text that a key types; '' for a key such as Escape."""
    return _TEXTS.get(key.key, key.key if len(key.key) == 1 else "")


def _key_event(key: Key, text: str, modifiers: int, *, down: bool) -> InputRequest:
    params: JsonObject = {
        "type": ("keyDown" if text else "rawKeyDown") if down else "keyUp",
        "key": key.key,
        "code": key.code,
        "windowsVirtualKeyCode": key.virtual_key_code,
        "modifiers": modifiers,
    }
    if down and text:
        params |= {"text": text, "unmodifiedText": text}
    if key.key in MODIFIERS:
        params["location"] = _LEFT
    if key.code.startswith("Numpad"):
        params["isKeypad"] = True
    return InputRequest(method="Input.dispatchKeyEvent", params=params)
