"""Keeps results small and still valid JSON: the longest strings are cut first, then the tails of long lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from browser_shell.core.calls import ToolCall
from browser_shell.core.json_values import JsonValue, compact_json
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.results import CommandResult
from browser_shell.hooks.json_sizes import JsonSizes, Size, name_size, nests_within
from browser_shell.hooks.text_cuts import MARKER_ROOM, cut, cut_longest_strings, cut_to_size

MAX_LEVELS = 100
"""Readers and writers of JSON give up somewhere below a thousand; nothing that a person would read comes near this."""
SHARES_IN_A_LIST = 4
"""An item of at most a fourth of its list's room stays whole or is left out; a larger one is made to fit."""
SHARES_IN_AN_OBJECT = 16
"""The same for its keys, which mostly mean different things: more of the large ones rather share the room."""
SMALLEST_SHARE = 200
"""In less room than this, the markers of what was cut would outweigh what is left."""
MARKER_KEY = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundOutput:
    """`stdout` has at most `max_characters`, whatever the page holds."""

    max_characters: int = 30_000
    max_message_characters: int = 4_000

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        message = cut(result.message, self.max_message_characters)
        # The line end after the JSON is a character of `stdout` too.
        data = bound(result.data, self.max_characters - 1)
        if data is result.data:
            return result if message == result.message else replace(result, message=message)
        notice = (
            f"OUTPUT_TRUNCATED: {_what_was_there(result.data)}, cut to {_size(data)}. "
            "Ask for less: a selector, a smaller depth, or only interactive elements."
        )
        return replace(result, data=data, message=f"{message}\n{notice}".strip())


def bound(value: JsonValue, max_characters: int) -> JsonValue:
    """The same shape in at most `max_characters` of JSON, with a marker at each place where something is missing."""
    flat = value if nests_within(value, MAX_LEVELS) else _without_depths(value, MAX_LEVELS)
    if _size(flat) <= max_characters:
        return flat
    return _Fitting(JsonSizes(flat, max_characters)).fit(flat, max_characters)


def _size(value: JsonValue) -> int:
    return len(compact_json(value))


def _what_was_there(value: JsonValue) -> str:
    if nests_within(value, MAX_LEVELS):
        return f"{_size(value)} characters"
    return f"more than {MAX_LEVELS} levels of lists and objects"


def _without_depths(value: JsonValue, levels: int) -> JsonValue:
    match value:
        case list() if value:
            return [_without_depths(item, levels - 1) for item in value] if levels else f"…[{len(value)} items cut]"
        case dict() if value:
            if not levels:
                return f"…[{len(value)} keys cut]"
            return {key: _without_depths(item, levels - 1) for key, item in value.items()}
        case _:
            return value


@dataclass(frozen=True, slots=True)
class _Claim:
    """What an item of a list or an entry of an object asks of the room."""

    name: int
    """What cannot be made smaller: the comma, and in an object the name."""
    value: Size

    @property
    def most(self) -> int:
        return self.name + self.value.full

    def least(self, share: int) -> int:
        """Long strings in it may be cut. It loses more than that only if it takes more than its share even so."""
        return min(self.name + self.value.least, max(share, self.name + MARKER_ROOM))


@dataclass(frozen=True, slots=True)
class _Fitting:
    sizes: JsonSizes

    def fit(self, value: JsonValue, room: int) -> JsonValue:
        """In at most `room`, which is `MARKER_ROOM` at least or all that the value takes."""
        size = self.sizes.of(value)
        if size.full <= room:
            return value
        if isinstance(value, str):
            return cut_to_size(value, room)
        if size.least <= room:
            return cut_longest_strings(value, size.full - room)
        match value:
            case list():
                return self._fit_list(value, room)
            case dict():
                return self._fit_dict(value, room)
            case _:
                return f"…[{size.full} characters cut]"

    def _fit_list(self, items: list[JsonValue], room: int) -> JsonValue:
        claims = [_Claim(1, self.sizes.of(item)) for item in items[:room]]
        given = _share_out(claims, len(items), room, SHARES_IN_A_LIST)
        fitted = [self.fit(items[index], given[index]) for index in given]
        missing = len(items) - len(fitted)
        return [*fitted, f"…[{missing} items cut]"] if missing else fitted

    def _fit_dict(self, entries: dict[str, JsonValue], room: int) -> JsonValue:
        # A key that looks like our marker gives way to it.
        heads = [(key, item) for key, item in islice(entries.items(), room) if key != MARKER_KEY]
        claims = [_Claim(name_size(key), self.sizes.of(item)) for key, item in heads]
        given = _share_out(claims, len(entries), room, SHARES_IN_AN_OBJECT)
        fitted = {heads[index][0]: self.fit(heads[index][1], given[index]) for index in given}
        missing = len(entries) - len(fitted)
        return {**fitted, MARKER_KEY: f"[{missing} keys cut]"} if missing else fitted


def _share_out(claims: Sequence[_Claim], total: int, room: int, shares: int) -> dict[int, int]:
    """The claims that are granted, by index, each with the room for its value: from the first on, as many as fit."""
    left = room - MARKER_ROOM
    share = min(left, max(left // shares, SMALLEST_SHARE))
    least = [claim.least(share) for claim in claims]
    everything = len(claims) == total and sum(least) < room
    kept = range(total) if everything else _first_that_fit(claims, least, left)
    left = room - 1 if everything else left

    def granted(index: int, level: int) -> int:
        return max(least[index], min(level, claims[index].most))

    # What is left over goes to the large ones, and to the smaller of them first.
    level = _greatest(left, lambda level: sum(granted(index, level) for index in kept) <= left)
    return {index: granted(index, level) - claims[index].name for index in kept}


def _first_that_fit(claims: Sequence[_Claim], least: Sequence[int], room: int) -> Sequence[int]:
    kept: list[int] = []
    used = 0
    for index, claim in enumerate(claims):
        if claim.name > room // 2:
            continue  # a name that would take the place of all others
        used += least[index]
        if used > room:
            break
        kept.append(index)
    return kept


def _greatest(most: int, fits: Callable[[int], bool]) -> int:
    low, high = 0, max(0, most)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
