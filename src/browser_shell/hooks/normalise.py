"""Drops what only costs tokens, and what a client should never have seen."""

from __future__ import annotations

from dataclasses import replace

from browser_shell.core.calls import ToolCall
from browser_shell.core.json_values import JsonValue
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.results import CommandResult

NOISE = frozenset({"lifecycle", "webmcp", "_boundary", "targetId"})
"""`webmcp` is text that the page controls; the others are the driver's own book-keeping."""
COMMANDS_WITH_FILES = frozenset({"screenshot", "pdf"})
COMMANDS_WITHOUT_ORIGIN = frozenset({"get", "is"})
"""They answer one question; where the page is, the caller can ask too."""


class NormaliseData:
    """Data-only JSON, without noise, typed text and server paths."""

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        data = normalise(plan, result.data)
        return result if data == result.data else replace(result, data=data)


def normalise(plan: BrowserCommand, data: JsonValue) -> JsonValue:
    if not isinstance(data, dict):
        return data
    dropped = set(NOISE)
    if "refs" not in plan.options:
        dropped.add("refs")
    if plan.name in COMMANDS_WITH_FILES:
        dropped.add("path")
    if plan.name in COMMANDS_WITHOUT_ORIGIN:
        dropped.add("origin")
    if not data.get("removedRefs"):
        dropped.add("removedRefs")
    kept = {key: value for key, value in data.items() if key not in dropped}
    if plan.name == "type" and len(plan.operands) > 1:
        # The text may be a password, and the caller knows it anyway.
        return {"typed": len(plan.operands[1])}
    delta = kept.get("snapshot")
    if isinstance(delta, dict):
        # A delta keeps its refs one level deeper.
        kept["snapshot"] = {key: value for key, value in delta.items() if key not in dropped}
    return kept
