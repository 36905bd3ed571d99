"""Typed audit records. What a person typed is in them only as `SecretText`, of which the log keeps length and HMAC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum


class RecordKind(Enum):
    """The audit vocabulary."""

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
    """A finished run, its evidence included, is removed because it is old or there are too many."""

    @property
    def announces_act(self) -> bool:
        """Whether something is about to happen. Such a record is on the disk before it does."""
        return self in _INTENTS

    @property
    def reports_end(self) -> bool:
        """Whether something is over. Such a record is kept and written later when the disk is full now."""
        return self in _ENDS


_INTENTS = frozenset(
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
_ENDS = frozenset(
    {
        RecordKind.TOOL_FINISHED,
        RecordKind.MCP_CONTAINER_CLEANUP,
        RecordKind.MCP_FILE_WRITE,
        RecordKind.SESSION_CLOSED,
        RecordKind.VIEWER_LEFT,
        RecordKind.TAKEOVER_ENDED,
    }
)


class SecretText:
    """Text that must not be written down. It does not show in `repr`, so it cannot slip into a log line."""

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
    """The caller's W3C trace id (`trace_id_of`), so that this record can be found from the caller's traces."""
    subcommand: str = ""
    host: str = ""
    """Host of the URL asked for. Paths and queries may hold secrets and stay out."""
    rule_id: str = ""
    error: str = ""
    exit_code: int | None = None
    judged_ms: float | None = None
    """From the call's arrival to the policy's decision."""
    ran_ms: float | None = None
    """The act itself."""
    duration_ms: float | None = None
    """All of it."""
    text: SecretText | None = None
    """What was typed. The log writes `text_length` and `text_hmac` instead."""
    suppressed_records: int | None = None
    """This record stands for so many of its kind that were not written one by one."""
    run_id: str = ""
    container_id: str = ""
    image: str = ""
    """By digest or local id."""
    limits: str = ""
    """Of a container, in words."""
    path: str = ""
    """Of an artifact, relative to the run's output."""
    size_bytes: int | None = None
    sha256: str = ""
    """Of an artifact, or of the evidence of a run."""
    durable: bool = False
    """Write to the disk before `record` returns, because the next step relies on it. Not a field of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Where a record stands in the log: evidence elsewhere names it by these."""

    sequence: int
    sha256: str


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def trace_id_of(traceparent: object) -> str:
    """The trace id in a W3C `traceparent` (Trace Context, section 3.2); '' for anything that is none."""
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return found.group(1) if found else ""


def utc_timestamp(seconds: float) -> str:
    """Format a wall-clock time as in audit records and evidence."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
