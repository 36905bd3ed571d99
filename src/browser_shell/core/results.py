"""Results of commands, and the outcomes that clients receive."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A screenshot or PDF document. Clients receive the content, never a path."""

    mime_type: str
    content: bytes
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of one command. `error` is None if `exit_code` is 0, or if it is the exit code of a test run."""

    exit_code: int
    data: JsonValue = None
    message: str = ""
    """Text for `stderr`. With exit code 0 it is a notice."""
    error: ErrorCode | None = None
    rule_id: str = ""
    retry_after_seconds: float | None = None
    attachments: tuple[Attachment, ...] = ()
    run_id: str = ""
    """Id of a container job, under which its evidence is stored."""
    evidence_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """The outcome of a call: session_id, exit_code, stdout and stderr, or `answer` instead, and metadata."""

    session_id: str
    exit_code: int
    stdout: str
    stderr: str
    error: ErrorCode | None = None
    rule_id: str = ""
    retry_after_seconds: float | None = None
    attachments: tuple[Attachment, ...] = ()
    answer: JsonObject | None = None
    """The answer of a tool with its own output schema."""
    uses_protocol_errors: bool = False
    """Whether `error` becomes a JSON-RPC error."""
    run_id: str = ""
