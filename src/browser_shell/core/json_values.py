"""What JSON can hold, as a type, and the form in which it goes to a client."""

from __future__ import annotations

import json
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
