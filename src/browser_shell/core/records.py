"""Typed audit records. Typed text is in them only as `SecretText`, of which the log keeps length and HMAC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum


class RecordKind(Enum):
    """Kinds of audit records."""

    MCP_TOOL_CALL = "MCP_TOOL_CALL"
    POLICY_BLOCKED = "POLICY_BLOCKED"
    SANDBOX_EXEC = "SANDBOX_EXEC"
    TOOL_FINISHED = "TOOL_FINISHED"
    MCP_CONTAINER_SPAWN = "MCP_CONTAINER_SPAWN"
    MCP_CONTAINER_EXEC = "MCP_CONTAINER_EXEC"
    MCP_CONTAINER_CLEANUP = "MCP_CONTAINER_CLEANUP"
    MCP_FILE_WRITE = "MCP_FILE_WRITE"
    MCP_NETWORK_BLOCKED = "MCP_NETWORK_BLOCKED"
    MCP_COMMAND_BLOCKED = "MCP_COMMAND_BLOCKED"
    SESSION_OPENED = "SESSION_OPENED"
    SESSION_CLOSED = "SESSION_CLOSED"
    EGRESS_CONNECT = "EGRESS_CONNECT"
    TICKET_ISSUED = "TICKET_ISSUED"
    TICKET_SPENT = "TICKET_SPENT"
    VIEWER_CONNECTED = "VIEWER_CONNECTED"
    VIEWER_LEFT = "VIEWER_LEFT"
    TAKEOVER_BEGUN = "TAKEOVER_BEGUN"
    TAKEOVER_ENDED = "TAKEOVER_ENDED"
    RUN_REMOVED = "RUN_REMOVED"
    """A finished run is removed with its evidence, because of its age or the total size of all runs."""


ANNOUNCEMENTS = frozenset(
    {
        RecordKind.SANDBOX_EXEC,
        RecordKind.MCP_CONTAINER_SPAWN,
        RecordKind.MCP_CONTAINER_EXEC,
        RecordKind.EGRESS_CONNECT,
        RecordKind.TICKET_ISSUED,
        RecordKind.VIEWER_CONNECTED,
        RecordKind.TAKEOVER_BEGUN,
        RecordKind.RUN_REMOVED,
    }
)
"""Records that announce an act. They are on the disk before the act begins."""
REPORTS_OF_ENDS = frozenset(
    {
        RecordKind.TOOL_FINISHED,
        RecordKind.MCP_CONTAINER_CLEANUP,
        RecordKind.MCP_FILE_WRITE,
        RecordKind.SESSION_CLOSED,
        RecordKind.VIEWER_LEFT,
        RecordKind.TAKEOVER_ENDED,
    }
)
"""Records that report the end of an act. While the disk is full, they are kept and written later."""


class SecretText:
    """Text that must not be logged. `repr` hides it, so that it cannot slip into a log line."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return f"SecretText({len(self._text)} characters)"

    def reveal(self) -> str:
        return self._text


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One line of the audit log, without the fields that the log itself adds."""

    kind: RecordKind
    call_id: str
    subject: str
    tool: str
    session_id: str = ""
    trace_id: str = ""
    """The caller's W3C trace id, which connects this record with the caller's traces."""
    subcommand: str = ""
    step: int | None = None
    """Number of the step, from 1 on, in a call with several steps."""
    host: str = ""
    """Host of the requested URL. Path and query may hold secrets and are left out."""
    rule_id: str = ""
    error: str = ""
    exit_code: int | None = None
    judged_ms: float | None = None
    """Milliseconds from the arrival of the call to the decision of the policy."""
    ran_ms: float | None = None
    """Milliseconds of execution."""
    duration_ms: float | None = None
    """Milliseconds of the whole call."""
    text: SecretText | None = None
    """Typed text. The log writes `text_length` and `text_hmac` instead."""
    suppressed_records: int | None = None
    """Number of similar records that this one replaces."""
    run_id: str = ""
    container_id: str = ""
    image: str = ""
    """Digest or local id."""
    limits: str = ""
    path: str = ""
    """Path of an artifact, relative to the output of the run."""
    size_bytes: int | None = None
    sha256: str = ""
    """Hash of an artifact, or of the evidence of a run."""
    durable: bool = False
    """Write to the disk before `record` returns, because the next step relies on it. Not a field of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The position of a record in the log. Evidence refers to the record by it."""

    sequence: int
    sha256: str


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def trace_id_of(traceparent: object) -> str:
    """Return the trace id of a W3C `traceparent` (Trace Context §3.2), or '' if it is malformed."""
    match = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return match.group(1) if match else ""


def utc_timestamp(seconds: float) -> str:
    """Format a wall-clock time as in audit records and evidence."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
