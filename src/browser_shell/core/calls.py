"""A tool call on its way through the server: the call, its plan, its result and the outcome for the client.

A plan is the typed form of a call after its arguments are parsed. No raw argv is used beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from browser_shell.core.decisions import IpAddress
from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue

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
    step: int = 0
    """Number of the step in a call with several, from 1 on. Its `arguments` are then those of the step alone."""

    @property
    def session_id(self) -> str:
        """The session id in the arguments, or '' if it is missing or malformed."""
        session_id = self.arguments.get("session_id") if isinstance(self.arguments, dict) else None
        return session_id if isinstance(session_id, str) and _SESSION_ID.fullmatch(session_id) else ""

    @property
    def ends_session(self) -> bool:
        """Whether the call is a `close` of its session."""
        return isinstance(self.arguments, dict) and self.arguments.get("argv") == ["close"] and self.session_id != ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlTarget:
    """A URL after WHATWG parsing. Only `href`, the canonical form, is passed on."""

    href: str
    scheme: str
    host: str
    """Canonical ASCII host without brackets and trailing dot; '' for `about:blank`."""
    port: int
    address: IpAddress | None = None
    """The address, if the host is an address literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserCommand:
    """One subcommand of `browser-shell`, inside the grammar of `policy/commands.py`."""

    session_id: str
    name: str
    """The subcommand, for example `open` or `wait`."""
    operands: tuple[str, ...] = ()
    """Positional values in order. `open` has the canonical URL."""
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Values by canonical option name without dashes. A switch has the value ''."""
    timeout_seconds: int
    targets: tuple[UrlTarget, ...] = ()
    """All URLs that this command opens."""
    next_step: str = ""
    """Name of the command that follows in the same call; '' for the last or only one."""

    @property
    def typed_text(self) -> str | None:
        """The text that the command types, which may be a password; None for commands that type nothing.

        The texts of `find`, `select-text` and `wait --text` are searched for and reach no field. Like selectors, they
        are in no record.
        """
        match self.name:
            case "fill" | "type" | "select":
                return "\n".join(self.operands[1:])
            case "press":
                return "\n".join(self.operands)
            case "dialog" if len(self.operands) > 1:
                return "\n".join(self.operands[1:])
            case _:
                return None

    @property
    def host(self) -> str:
        """The host of the first URL, for records."""
        return self.targets[0].host if self.targets else ""

    @property
    def overhead_seconds(self) -> int:
        """Seconds that the backend may need beyond the timeout."""
        return 0


class JobRunner(Enum):
    """The programs that a job can run. None of them executes a command of the caller."""

    PYTEST = "pytest"
    PLAYWRIGHT_PYTHON = "playwright-python"
    PLAYWRIGHT_NODE = "playwright-node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerJob:
    """One run of tests in a fresh container, inside the grammar of `policy/jobs.py`."""

    name: str
    """The name of the tool."""
    runner: JobRunner
    project: str = "."
    """Directory in the workspace in which the runner starts."""
    tests: tuple[str, ...] = ()
    """Files, directories and single tests, relative to the project. An empty tuple selects all tests."""
    keyword: str = ""
    markers: str = ""
    max_failures: int = 0
    """Number of failures after which the run stops; 0 for no limit."""
    workers: int = 1
    retries: int = 0
    output_lines: int = 50
    """Number of last output lines in the answer."""
    screenshots: bool = False
    videos: bool = False
    traces: bool = False
    timeout_seconds: int

    @property
    def host(self) -> str:
        return ""

    @property
    def overhead_seconds(self) -> int:
        """Seconds to create and remove the container, and to read its output."""
        return 120


Plan: TypeAlias = BrowserCommand | ContainerJob


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
    advice: str = ""
    """Advice for this case; empty for the advice of `error`."""
    rule_id: str = ""
    retry_after_seconds: float | None = None
    attachments: tuple[Attachment, ...] = ()
    shows_new_document: bool = False
    """Whether the session shows another document than before, after a navigation or in another tab."""
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
