"""The contracts by which packages that may not import each other meet. `app.py` joins them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol, TypeAlias

from browser_shell.core.calls import Principal, ToolCall
from browser_shell.core.decisions import Decision
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.records import AuditRecord
from browser_shell.core.results import CommandResult, ToolOutcome

IpAddress: TypeAlias = IPv4Address | IPv6Address
NewId: TypeAlias = Callable[[], str]


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds that never jump; for durations and deadlines."""

    def wall(self) -> float:
        """Seconds since the epoch; for records that people read."""


class Tool(Protocol):
    """A tool as clients see it, and the step from its arguments to a plan."""

    name: str

    def describe(self) -> ToolDescription: ...

    def plan(self, arguments: JsonValue) -> BrowserCommand:
        """Raises: ArgumentsInvalid, PolicyBlocked."""


class ToolDescription(Protocol):
    """The wire form of a tool, without the wire library."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> JsonObject: ...
    @property
    def output_schema(self) -> JsonObject: ...
    @property
    def annotations(self) -> dict[str, bool]: ...


class Resolver(Protocol):
    """Turns a host name into addresses."""

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """Every address of the name; empty when there is none. Never raises for a name that does not exist."""


class Policy(Protocol):
    """Pure rules over a plan and the addresses its hosts resolved to."""

    def needs_lookup(self, command: BrowserCommand) -> Sequence[str]:
        """Hosts whose addresses `decide` must know."""

    def decide(self, command: BrowserCommand, answers: dict[str, Sequence[IpAddress]]) -> Decision: ...


class AuditLog(Protocol):
    """Append-only evidence."""

    async def record(self, record: AuditRecord) -> None:
        """Durable when it returns. Raises: AuditUnavailable."""


class BeforeHook(Protocol):
    """Sees the plan before the policy judges it."""

    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        """Return the plan, changed or not. Raise CallRefused to stop the call."""


class AfterHook(Protocol):
    """Sees the result before the client does."""

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult: ...


class Sandbox(Protocol):
    """Runs a plan somewhere it can do no harm."""

    async def run(self, principal: Principal, plan: BrowserCommand) -> CommandResult:
        """Raises: ExecutionTimedOut, SandboxUnavailable, TryLater."""


class CallHandler(Protocol):
    """What the endpoint needs of the pipeline."""

    def tools(self) -> Sequence[ToolDescription]: ...

    def handle(self, call: ToolCall) -> Awaitable[ToolOutcome]:
        """Raises: UnknownTool, PolicyBlocked for a reserved tool name."""
