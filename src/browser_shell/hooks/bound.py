"""Keeps results small and still valid JSON: the longest strings are cut first, then the tails of long lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from browser_shell.core.calls import ToolCall
from browser_shell.core.json_values import JsonValue, compact_json
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.results import CommandResult

SHORTEST_CUT = 400
"""Strings are not cut below this while dropping items of lists could help instead."""
MARKER_ROOM = 40
LONGEST_ESCAPE = 6
"""A control character in JSON: backslash, u and four digits."""
SMALLEST_SHARE = 2 * MARKER_ROOM
"""Less room than this for each item of a list says nothing; then its tail is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundOutput:
    """`stdout` has at most `max_characters`, whatever the page holds."""

    max_characters: int = 30_000
    max_message_characters: int = 4_000

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        message = cut(result.message, self.max_message_characters)
        size = _size(result.data)
        if size <= self.max_characters:
            return result if message == result.message else replace(result, message=message)
        data = bound(result.data, self.max_characters)
        notice = (
            f"OUTPUT_TRUNCATED: {size} characters, cut to {_size(data)}. "
            "Ask for less: a selector, a smaller depth, or only interactive elements."
        )
        return replace(result, data=data, message=f"{message}\n{notice}".strip())


def bound(value: JsonValue, max_characters: int) -> JsonValue:
    """The same shape in at most `max_characters` of JSON, with a marker at each place where something is missing."""
    excess = _size(value) - max_characters
    if excess <= 0:
        return value
    longest = _string_limit(sorted(_string_sizes(value), reverse=True), excess)
    return _fit(_cut_strings(value, longest), max_characters)


def cut(text: str, max_characters: int) -> str:
    """The head of a text. Ends at a line where one is near, so that no element is shown by half."""
    if len(text) <= max_characters:
        return text
    keep = max(0, max_characters - MARKER_ROOM)
    line_end = text.rfind("\n", max(0, keep - 200), keep)
    head = text[: line_end + 1] if line_end > 0 else text[:keep]
    return f"{head}…[{len(text) - len(head)} characters cut]"


def _size(value: JsonValue) -> int:
    return len(compact_json(value))


def _string_sizes(value: JsonValue) -> Iterator[int]:
    match value:
        case str():
            if len(value) * LONGEST_ESCAPE > SHORTEST_CUT:
                yield _size(value)
        case list():
            for item in value:
                yield from _string_sizes(item)
        case dict():
            for item in value.values():
                yield from _string_sizes(item)


def _string_limit(sizes: list[int], excess: int) -> int:
    """The greatest length of a string at which `excess` characters are gone; not below `SHORTEST_CUT`."""
    for count, size in enumerate(sizes, start=1):
        following = max(sizes[count] if count < len(sizes) else 0, SHORTEST_CUT)
        if excess <= count * (size - following):
            return size - -(-excess // count)
        excess -= count * (size - following)
        if following == SHORTEST_CUT:
            break
    return SHORTEST_CUT


def _cut_strings(value: JsonValue, longest: int) -> JsonValue:
    match value:
        case str():
            return _cut_to_size(value, longest)
        case list():
            return [_cut_strings(item, longest) for item in value]
        case dict():
            return {key: _cut_strings(item, longest) for key, item in value.items()}
        case _:
            return value


def _cut_to_size(text: str, size: int) -> str:
    """Cut by the length in JSON, where a quote or a newline takes two characters and a control character six."""
    if len(text) * LONGEST_ESCAPE + 2 <= size:
        return text
    escaped = _size(text)
    if escaped <= size:
        return text
    if escaped == len(text) + 2:
        return cut(text, size - 2)
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        if _size(cut(text, middle)) <= size:
            low = middle
        else:
            high = middle - 1
    return cut(text, low)


def _fit(value: JsonValue, room: int) -> JsonValue:
    if _size(value) <= room:
        return value
    match value:
        case str():
            return _cut_to_size(value, room)
        case list():
            return _fit_list(value, room)
        case dict():
            return _fit_dict(value, room)
        case _:
            return f"…[{_size(value)} characters cut]"


def _fit_list(items: list[JsonValue], room: int) -> JsonValue:
    sizes = [_size(item) + 1 for item in items]
    kept = _head_that_fits(sizes, room - MARKER_ROOM)
    share = _fair_share(sizes[:kept], room - MARKER_ROOM)
    fitted = [_fit(item, share - 1) for item in items[:kept]]
    return fitted if kept == len(items) else [*fitted, f"…[{len(items) - kept} items cut]"]


def _fit_dict(entries: dict[str, JsonValue], room: int) -> JsonValue:
    sizes = [_size(key) + _size(item) + 2 for key, item in entries.items()]
    kept = _head_that_fits(sizes, room - MARKER_ROOM)
    share = _fair_share(sizes[:kept], room - MARKER_ROOM)
    fitted: dict[str, JsonValue] = {}
    for key, item in list(entries.items())[:kept]:
        left = share - _size(key) - 2
        if left < MARKER_ROOM and left < _size(item):
            continue  # the name alone is longer than its share
        fitted[key] = _fit(item, left)
    missing = len(entries) - len(fitted)
    return fitted if not missing else {**fitted, "…": f"[{missing} keys cut]"}


def _head_that_fits(sizes: list[int], room: int) -> int:
    """How many items, from the first, get at least the smallest share each."""
    used = 0
    for count, size in enumerate(sizes):
        used += min(size, SMALLEST_SHARE)
        if used > room:
            return count
    return len(sizes)


def _fair_share(sizes: list[int], room: int) -> int:
    """The greatest size such that all items fit when none is larger than it."""
    remaining = max(0, room)
    for index, size in enumerate(sorted(sizes)):
        share = remaining // (len(sizes) - index)
        if size > share:
            return share
        remaining -= size
    return room
