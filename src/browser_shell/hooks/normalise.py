"""Drop fields that only cost tokens, and fields that clients must not see."""

from __future__ import annotations

from dataclasses import replace

from browser_shell.core.calls import ToolCall
from browser_shell.core.json_values import JsonValue
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.results import CommandResult

NOISE = frozenset({"lifecycle", "webmcp", "_boundary", "targetId"})
"""`webmcp` is text under the control of the page; the others are internal to the driver."""
COMMANDS_WITH_FILES = frozenset({"screenshot", "pdf"})
COMMANDS_WITHOUT_ORIGIN = frozenset({"get", "is"})
"""Their answer is a single value. A caller that needs the origin can use `get url`."""


class NormaliseData:
    """Remove driver metadata, typed text and server paths from the data of a result."""

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
        # The text may be a password, so only its length is returned.
        return {"typed": len(plan.operands[1])}
    delta = kept.get("snapshot")
    if isinstance(delta, dict):
        # A delta has its refs one level deeper.
        kept["snapshot"] = {key: value for key, value in delta.items() if key not in dropped}
    return kept
