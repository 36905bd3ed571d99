"""What came back from a command, before and after it is put into words for a client."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that the server made and read back: a picture or a document. It never has a path."""

    mime_type: str
    content: bytes
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The outcome of one command. `error` is None when `exit_code` is 0, and when the code is that of a test run."""

    exit_code: int
    data: JsonValue = None
    message: str = ""
    """Goes to `stderr`. With exit code 0 it is a notice."""
    error: ErrorCode | None = None
    rule_id: str = ""
    retry_after_seconds: float | None = None
    attachments: tuple[Attachment, ...] = ()
    run_id: str = ""
    """Of a container job: where its evidence lies, however it ended."""
    evidence_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What the endpoint puts on the wire: the four keys, or `answer` in their place, and what rides beside them."""

    session_id: str
    exit_code: int
    stdout: str
    stderr: str
    error: ErrorCode | None = None
    rule_id: str = ""
    retry_after_seconds: float | None = None
    attachments: tuple[Attachment, ...] = ()
    answer: JsonObject | None = None
    """Of a tool with an output schema of its own."""
    uses_protocol_errors: bool = False
    """Whether `error` is to be an error of JSON-RPC."""
    run_id: str = ""
