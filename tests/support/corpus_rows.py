"""Reads the attack corpus in tests/data/corpus and unfolds its size macros."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "data" / "corpus"


def load(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [unfold(json.loads(line)) for line in lines if line.strip()]


def unfold(value: Any) -> Any:
    if isinstance(value, list):
        return [unfold(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "__repeat_str__" in value:
        macro = value["__repeat_str__"]
        return macro["s"] * macro["n"]
    if "__repeat_item__" in value:
        macro = value["__repeat_item__"]
        return [*macro.get("prefix", []), *[macro["item"]] * macro["n"]]
    if "__template__" in value:
        return value["__template__"] % unfold(value["fill"])
    return {key: unfold(item) for key, item in value.items()}
