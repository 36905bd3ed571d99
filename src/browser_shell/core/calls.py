"""One tool call as it reaches the pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who calls. Sessions, limits and records belong to a subject."""

    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One `tools/call`, its arguments not yet judged."""

    call_id: str
    principal: Principal
    tool: str
    arguments: JsonValue
