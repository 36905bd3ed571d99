"""Tool calls before they are judged."""

from __future__ import annotations

import re
from dataclasses import dataclass

from browser_shell.core.json_values import JsonValue

SESSION_ID_PATTERN = "[a-zA-Z0-9_][a-zA-Z0-9._-]{0,63}"
_SESSION_ID = re.compile(SESSION_ID_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller. Sessions, limits and records belong to a subject."""

    subject: str
    expires_at: float | None = None
    """Seconds since the epoch at which the token of the caller expires; None without a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One `tools/call` with unchecked arguments."""

    call_id: str
    principal: Principal
    tool: str
    arguments: JsonValue
    trace_id: str = ""
    """Trace id of the caller's W3C trace context, or ''."""

    @property
    def session_id(self) -> str:
        """The session id in the arguments, or '' if it is missing or malformed."""
        session_id = self.arguments.get("session_id") if isinstance(self.arguments, dict) else None
        return session_id if isinstance(session_id, str) and _SESSION_ID.fullmatch(session_id) else ""

    @property
    def ends_session(self) -> bool:
        """Whether the call is a `close` of its session."""
        return isinstance(self.arguments, dict) and self.arguments.get("argv") == ["close"] and self.session_id != ""
