"""JSON values: their types, a strict parser and the compact form that clients receive."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import NoReturn, TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def parse_json(text: str) -> JsonValue:
    """Parse JSON without Python's extensions: no NaN, no infinity, no duplicate keys.

    Raises: ValueError for text that two parsers could read differently.
    """
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    # Parsers disagree about which duplicate wins, so the value that was judged might not be the value that is used.
    result = dict(pairs)
    if len(result) < len(pairs):
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {duplicate!r} appears twice")
    return result


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value
