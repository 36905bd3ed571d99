"""Truncate results to a number of characters. They stay valid JSON, with a marker wherever something is missing.

The longest strings are cut first, then the tails of lists and objects. Sizes are characters of compact JSON.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from json import loads
from operator import is_
from typing import NamedTuple

from browser_shell.core.calls import BrowserCommand, CommandResult, ContainerJob, ToolCall
from browser_shell.core.json_values import JsonObject, JsonValue, compact_json

MAX_LEVELS = 100
"""Nesting depth. Common JSON parsers fail somewhere below 1000 levels."""
SHORTEST_CUT = 400
"""Strings are cut to this size at least, as long as leaving out list items can help instead."""
MARKER_KEY = "…"
_CUT = re.compile(r"…\[\d+ characters cut]\Z")
_MARKER_ROOM = 40
"""Upper bound for the size of a marker, with its quotes or brackets."""
_LIST_SHARES, _OBJECT_SHARES = 4, 16
"""A child of at most 1/4 (list) or 1/16 (object) of the room is kept whole or left out. A larger one is truncated."""
_SMALLEST_SHARE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateOutput:
    """Limit the result of a browser command, line end included."""

    max_characters: int = 30_000
    max_message_characters: int = 4_000

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        message = cut_text(result.message, self.max_message_characters)
        whole = _from_offset(plan, result.data)
        data = truncate(whole, self.max_characters - 1)
        if data is whole:
            return replace(result, data=data, message=message)
        too_deep = _limit_depth(whole, MAX_LEVELS) is not whole
        before = f"more than {MAX_LEVELS} levels of lists and objects" if too_deep else f"{_size(whole)} characters"
        notice = f"OUTPUT_TRUNCATED: {before}, cut to {_size(data)}. {_how_to_read_on(plan, data)}"
        return replace(result, data=data, message=f"{message}\n{notice}".strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateJobAnswer:
    """Limit the answer of a job in ever smaller steps. It keeps its schema, and the run's directory keeps all of it."""

    max_characters: int = 30_000

    async def after(self, call: ToolCall, plan: ContainerJob, result: CommandResult) -> CommandResult:
        data = result.data
        for scale in (1.0, 0.5, 0.2, 0.0):
            if not isinstance(data, dict) or _size(data) <= self.max_characters:
                break
            data = _shorten_answer(data, scale)
        return replace(result, data=data, message=result.message[:4000])


def _shorten_answer(answer: JsonObject, scale: float) -> JsonObject:
    shorter, message_characters, output_characters = dict(answer), int(1000 * scale), int(8000 * scale)
    for name, count in (("failures", int(10 * scale)), ("artifacts", int(30 * scale))):
        items, left_out = answer.get(name), answer.get(f"{name}_left_out")
        items = items if isinstance(items, list) else []
        shorter[name] = [_cut_message(item, message_characters) for item in items[:count]]
        shorter[f"{name}_left_out"] = (left_out if isinstance(left_out, int) else 0) + len(items[count:])
    output = answer.get("output")
    if isinstance(output, str) and len(output) > output_characters:
        shorter |= {"output": output[len(output) - output_characters :], "output_cut": True}
    return shorter


def _cut_message(item: JsonValue, characters: int) -> JsonValue:
    message = item.get("message") if isinstance(item, dict) else None
    return {**item, "message": message[:characters]} if isinstance(item, dict) and isinstance(message, str) else item


def _from_offset(plan: BrowserCommand, data: JsonValue) -> JsonValue:
    """Leave out the beginning of a text, for `get text SEL --from N`.

    Secrets are redacted before, so that an offset inside of one does not show its rest.
    """
    offset, text = _offset(plan), data.get("text") if isinstance(data, dict) else None
    return {**data, "text": text[offset:]} if offset and isinstance(data, dict) and isinstance(text, str) else data


def _offset(plan: BrowserCommand) -> int:
    return int(plan.options.get("from", 0)) if _reads_text(plan) else 0


def _reads_text(plan: BrowserCommand) -> bool:
    return plan.name == "get" and plan.operands[:1] == ("text",)


def _how_to_read_on(plan: BrowserCommand, data: JsonValue) -> str:
    text = data.get("text") if isinstance(data, dict) and _reads_text(plan) else None
    cut = _CUT.search(text) if isinstance(text, str) else None
    if cut is None:
        return "Ask for less: a selector, a smaller depth, or only interactive elements."
    return f"Read on with: get text {plan.operands[1]} --from {_offset(plan) + cut.start()}"


def truncate(value: JsonValue, max_characters: int) -> JsonValue:
    """Return `value` itself if it fits, otherwise a copy of the same shape with at most `max_characters` of JSON."""
    value = _limit_depth(value, MAX_LEVELS)
    return value if _size(value) <= max_characters else _Truncation(max_characters).fit(value, max_characters)


def cut_text(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else _head(text, max_characters - _MARKER_ROOM)


def _head(text: str, keep: int) -> str:
    """Cut after `keep` characters, or after the last line that ends up to 200 characters earlier."""
    line_end = text.rfind("\n", max(0, keep - 200), max(0, keep))
    head = text[: line_end + 1] if line_end > 0 else text[: max(0, keep)]
    return f"{head}…[{len(text) - len(head)} characters cut]"


def _cut_string(text: str, size: int) -> str:
    """Cut by the size in JSON, where a quote takes two characters and a control character six."""
    if _size(text) <= size:
        return text
    end = max(0, size - 2 - _MARKER_ROOM)
    escaped = compact_json(text[:end])[1:-1][:end]
    while True:
        try:
            return _head(text, len(loads(f'"{escaped}"', strict=False)))
        except ValueError:
            escaped = escaped[:-1]  # The cut went through an escape sequence.


def _size(value: JsonValue) -> int:
    return len(compact_json(value))


def _limit_depth(value: JsonValue, levels: int) -> JsonValue:
    """Replace what is nested deeper than `levels` by markers. Return `value` itself if nothing is."""
    if not value or not isinstance(value, list | dict):
        return value
    if not levels:
        return f"…[{len(value)} {'items' if isinstance(value, list) else 'keys'} cut]"
    children = value if isinstance(value, list) else list(value.values())
    limited = [_limit_depth(item, levels - 1) if isinstance(item, list | dict) else item for item in children]
    if all(map(is_, limited, children)):
        return value
    return limited if isinstance(value, list) else dict(zip(value, limited, strict=True))


class _Size(NamedTuple):
    full: int
    least: int
    """With every string cut to `SHORTEST_CUT`."""


class _Claim(NamedTuple):
    """The room that a child of a list or object may take, between `least` and `most`."""

    key: str
    item: JsonValue
    overhead: int
    """Size of the comma and, in an object, of the key."""
    least: int
    most: int


class _Truncation:
    """Fit a value and its children into `limit`. Each list and object is measured once, so the cost is linear."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sizes: dict[int, _Size] = {}  # By id(), which is stable while the caller holds the value.

    def fit(self, value: JsonValue, room: int) -> JsonValue:
        """Return at most `room` characters, which is `_MARKER_ROOM` at least or the size of the value."""
        size = self._measure(value)
        if size.full <= room:
            return value
        if isinstance(value, str):
            return _cut_string(value, room)
        if size.least <= room:
            return _cut_longest_strings(value, size.full - room)
        if not isinstance(value, list | dict):
            return f"…[{size.full} characters cut]"
        kept = {claim.key: self.fit(claim.item, granted) for claim, granted in self._share(value, room)}
        missing = len(value) - len(kept)
        if isinstance(value, list):
            return [*kept.values(), *([f"…[{missing} items cut]"] if missing else [])]
        return {**kept, **({MARKER_KEY: f"[{missing} keys cut]"} if missing else {})}

    def _measure(self, value: JsonValue) -> _Size:
        """Measure up to the limit: what is larger may get any size above it."""
        if not isinstance(value, list | dict):
            full = _size(value)
            return _Size(full, min(full, SHORTEST_CUT) if isinstance(value, str) else full)
        if id(value) not in self._sizes:
            full = least = 1
            for _, item, overhead in _children(value):
                size = self._measure(item)
                full, least = full + overhead + size.full, least + overhead + size.least
                if least > self._limit:
                    break
            self._sizes[id(value)] = _Size(max(2, full), max(2, least))
        return self._sizes[id(value)]

    def _share(self, value: list[JsonValue] | JsonObject, room: int) -> Iterator[tuple[_Claim, int]]:
        """Choose the children to keep, from the first on, each with the room for it."""
        left = room - _MARKER_ROOM
        share = min(left, max(left // (_LIST_SHARES if isinstance(value, list) else _OBJECT_SHARES), _SMALLEST_SHARE))
        claims = []
        for key, item, overhead in islice(_children(value), room):
            # A key of more than half the room would displace all others.
            if key != MARKER_KEY and overhead <= left // 2:
                size = self._measure(item)
                least = min(overhead + size.least, max(share, overhead + _MARKER_ROOM))
                claims.append(_Claim(key, item, overhead, least, overhead + size.full))
        used = accumulate(claim.least for claim in claims)
        claims = [claim for claim, total in zip(claims, used, strict=True) if total <= left]
        level = _water_level([(claim.least, claim.most) for claim in claims], left)
        for claim in claims:
            yield claim, max(claim.least, min(level, claim.most)) - claim.overhead


def _children(value: list[JsonValue] | JsonObject) -> Iterator[tuple[str, JsonValue, int]]:
    """Yield key or index, value, and the size of the comma and key."""
    if isinstance(value, list):
        return ((str(index), item, 1) for index, item in enumerate(value))
    return ((key, item, _size(key) + 2) for key, item in value.items())


def _water_level(bounds: Sequence[tuple[int, int]], room: int) -> int:
    """Return the greatest level at which the bounds (least, most), each clamped to the level, fit into the room."""
    levels = range(room + 1)
    return bisect_right(levels, room, key=lambda level: sum(max(low, min(level, high)) for low, high in bounds)) - 1


def _cut_longest_strings(value: JsonValue, excess: int) -> JsonValue:
    sizes = [size for text in _strings(value) if (size := _size(text)) > SHORTEST_CUT]
    return _cut_strings(value, _water_level([(SHORTEST_CUT, size) for size in sizes], sum(sizes) - excess))


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _strings(item)


def _cut_strings(value: JsonValue, size: int) -> JsonValue:
    if isinstance(value, str):
        return _cut_string(value, size)
    if isinstance(value, list):
        return [_cut_strings(item, size) for item in value]
    return {key: _cut_strings(item, size) for key, item in value.items()} if isinstance(value, dict) else value
