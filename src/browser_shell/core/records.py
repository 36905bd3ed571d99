"""Typed audit records. They carry hashes and lengths of what a person typed, never the text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RecordKind(Enum):
    """The audit vocabulary."""

    MCP_TOOL_CALL = "MCP_TOOL_CALL"
    POLICY_BLOCKED = "POLICY_BLOCKED"
    SANDBOX_EXEC = "SANDBOX_EXEC"
    TOOL_FINISHED = "TOOL_FINISHED"
    EGRESS_CONNECT = "EGRESS_CONNECT"
    MCP_NETWORK_BLOCKED = "MCP_NETWORK_BLOCKED"
    TICKET_ISSUED = "TICKET_ISSUED"
    TICKET_SPENT = "TICKET_SPENT"
    VIEWER_CONNECTED = "VIEWER_CONNECTED"
    VIEWER_LEFT = "VIEWER_LEFT"
    TAKEOVER_BEGUN = "TAKEOVER_BEGUN"
    TAKEOVER_ENDED = "TAKEOVER_ENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One line of the audit log, without the fields that the log itself adds."""

    kind: RecordKind
    call_id: str
    subject: str
    tool: str
    session_id: str = ""
    subcommand: str = ""
    host: str = ""
    """Host of the URL asked for. Paths and queries may hold secrets and stay out."""
    rule_id: str = ""
    error: str = ""
    exit_code: int | None = None
    duration_ms: float | None = None
