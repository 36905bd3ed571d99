"""One tool call as it reaches the pipeline."""

from __future__ import annotations

import re
from dataclasses import dataclass

from browser_shell.core.json_values import JsonValue

SESSION_ID_PATTERN = "[a-zA-Z0-9_][a-zA-Z0-9._-]{0,63}"
_SESSION_ID = re.compile(SESSION_ID_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who calls. Sessions, limits and records belong to a subject."""

    subject: str
    expires_at: float | None = None
    """Wall time at which the token of this caller expires; None when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One `tools/call`, its arguments not yet judged."""

    call_id: str
    principal: Principal
    tool: str
    arguments: JsonValue
    trace_id: str = ""
    """Of the caller's W3C trace context; '' when there is none."""

    @property
    def session_id(self) -> str:
        """The session that the arguments name; '' when they name none that could exist."""
        named = self.arguments.get("session_id") if isinstance(self.arguments, dict) else None
        return named if isinstance(named, str) and _SESSION_ID.fullmatch(named) else ""

    @property
    def ends_session(self) -> bool:
        """Whether it asks for the end of its session, and nothing else."""
        return isinstance(self.arguments, dict) and self.arguments.get("argv") == ["close"] and self.session_id != ""
