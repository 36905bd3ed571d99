"""The wire form of a tool, without the wire library."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.json_values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What `tools/list` says about one tool."""

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    annotations: dict[str, bool]
