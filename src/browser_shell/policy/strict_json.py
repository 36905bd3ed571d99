"""JSON as the RFC has it: no NaN, no infinity, no key twice."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import NoReturn

from browser_shell.core.json_values import JsonValue


def parse_json(text: str) -> JsonValue:
    """Read one JSON text.

    Raises: ValueError for anything that two readers could understand differently.
    """
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=_object_without_twins, parse_constant=_refuse_constant, parse_float=_finite
        )
    except RecursionError as deep:
        raise ValueError("nested too deeply") from deep
    return value


def _object_without_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    # Readers disagree about which twin wins, so what was judged might not be what runs.
    result = dict(pairs)
    if len(result) < len(pairs):
        twin = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twin!r} appears twice")
    return result


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value
