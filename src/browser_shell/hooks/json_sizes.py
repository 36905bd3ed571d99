"""How much room values take as JSON, each looked at once however deep it lies."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from browser_shell.core.json_values import JsonValue, compact_json
from browser_shell.hooks.text_cuts import SHORTEST_CUT


class Size(NamedTuple):
    """Characters of JSON."""

    full: int
    least: int
    """What is left when every string is cut to `SHORTEST_CUT`."""


class JsonSizes:
    """The sizes of a value and of all that it holds. What is larger than `limit` may count as less, above the limit."""

    def __init__(self, value: JsonValue, limit: int) -> None:
        self._limit = limit
        self._of_large: dict[int, Size] = {}  # by id(), which stays good while the caller holds `value`
        self._measure(value)

    def of(self, value: JsonValue) -> Size:
        # Small ones are not remembered: a page can make a million of them.
        return self._of_large.get(id(value)) or _of_small(value)

    def _measure(self, value: JsonValue) -> Size:
        if not isinstance(value, list | dict):
            return _of_small(value)
        # Every item takes two characters or more, so that the first `limit` of them are above the limit already.
        full, least = 1, 1
        for item in islice(value.values() if isinstance(value, dict) else value, self._limit):
            if item is None or isinstance(item, int | float):
                size = len(repr(item))
                full, least = full + size, least + size
            else:
                measured = self._measure(item)
                full, least = full + measured.full, least + measured.least
        names = sum(map(name_size, islice(value, self._limit))) if isinstance(value, dict) else len(value)
        size_of_all = Size(max(2, full + names), max(2, least + names))
        if size_of_all.full > SHORTEST_CUT:
            self._of_large[id(value)] = size_of_all
        return size_of_all


def _of_small(value: JsonValue) -> Size:
    """Of a scalar, or of a list or an object that is too small to hold a string that may be cut."""
    full = len(compact_json(value))
    return Size(full, min(full, SHORTEST_CUT) if isinstance(value, str) else full)


def name_size(key: str) -> int:
    """Of a name in an object, with its colon and the comma after its value."""
    return len(compact_json(key)) + 2


def nests_within(value: JsonValue, levels: int) -> bool:
    """Whether lists and objects lie at most so deep in each other. Asks without recursion, which has a limit itself."""
    level: list[JsonValue] = [value]
    for _ in range(levels + 1):
        inner = [held for held in level if held and isinstance(held, list | dict)]
        if not inner:
            return True
        level = [item for held in inner for item in (held.values() if isinstance(held, dict) else held)]
    return False
