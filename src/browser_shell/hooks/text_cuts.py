"""Shorter texts, which say how much of them is missing."""

from __future__ import annotations

from browser_shell.core.json_values import JsonValue, compact_json

SHORTEST_CUT = 400
"""Strings are not cut below this while leaving out the last items of a list could help instead."""
MARKER_ROOM = 40
"""Any marker fits into this, with its quotes or brackets."""
LONGEST_ESCAPE = 6
"""A control character in JSON: backslash, u and four digits."""


def cut(text: str, max_characters: int) -> str:
    """The head of a text. Ends at a line where one is near, so that no element is shown by half."""
    if len(text) <= max_characters:
        return text
    keep = max(0, max_characters - MARKER_ROOM)
    line_end = text.rfind("\n", max(0, keep - 200), keep)
    head = text[: line_end + 1] if line_end > 0 else text[:keep]
    return f"{head}…[{len(text) - len(head)} characters cut]"


def cut_to_size(text: str, size: int) -> str:
    """Cut by the length in JSON, where a quote or a newline takes two characters and a control character six."""
    if len(text) * LONGEST_ESCAPE + 2 <= size:
        return text
    escaped = len(compact_json(text))
    if escaped <= size:
        return text
    if escaped == len(text) + 2:
        return cut(text, size - 2)
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        if len(compact_json(cut(text, middle))) <= size:
            low = middle
        else:
            high = middle - 1
    return cut(text, low)


def cut_longest_strings(value: JsonValue, excess: int) -> JsonValue:
    """The same with at least `excess` characters less, if strings longer than `SHORTEST_CUT` have as many to give."""
    sizes: list[int] = []
    _collect_sizes(value, sizes)
    long = sorted((size for size in sizes if size > SHORTEST_CUT), reverse=True)
    return _cut_strings(value, _longest_kept(long, excess))


def _collect_sizes(value: JsonValue, sizes: list[int]) -> None:
    match value:
        case str():
            if len(value) * LONGEST_ESCAPE > SHORTEST_CUT:
                sizes.append(len(compact_json(value)))
        case list():
            for item in value:
                _collect_sizes(item, sizes)
        case dict():
            for item in value.values():
                _collect_sizes(item, sizes)


def _longest_kept(sizes: list[int], excess: int) -> int:
    """The greatest length of a string at which `excess` characters are gone; not below `SHORTEST_CUT`."""
    for count, size in enumerate(sizes, start=1):
        following = sizes[count] if count < len(sizes) else SHORTEST_CUT
        if excess <= count * (size - following):
            return size - -(-excess // count)
        excess -= count * (size - following)
    return SHORTEST_CUT


def _cut_strings(value: JsonValue, longest: int) -> JsonValue:
    match value:
        case str():
            return cut_to_size(value, longest)
        case list():
            return [_cut_strings(item, longest) for item in value]
        case dict():
            return {key: _cut_strings(item, longest) for key, item in value.items()}
        case _:
            return value
