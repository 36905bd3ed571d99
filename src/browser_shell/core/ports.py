"""Protocols between packages that may not import each other. `server/` connects their implementations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypeVar

from browser_shell.core.access import SessionWindow
from browser_shell.core.calls import BrowserCommand, CommandResult, Plan, ToolCall, ToolOutcome
from browser_shell.core.containers import ContainerOrder, ContainerReport
from browser_shell.core.decisions import Decision, IpAddress
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.records import AuditRecord

NewId: TypeAlias = Callable[[], str]
ReportProgress: TypeAlias = Callable[[float, float, str], Awaitable[None]]
"""Arguments: seconds done, seconds in total, and a message. It never raises."""

# A pipeline handles one kind of plan, and the type checker keeps the kinds apart. The default is the browser.
PlanT = TypeVar("PlanT", bound=Plan, default=BrowserCommand)
PlanT_co = TypeVar("PlanT_co", bound=Plan, covariant=True, default=BrowserCommand)
PlanT_contra = TypeVar("PlanT_contra", bound=Plan, contravariant=True, default=BrowserCommand)


async def ignore_progress(done: float, total: float, message: str) -> None:
    """Report no progress, for callers that did not request it."""


class Clock(Protocol):
    """The source of time."""

    def monotonic(self) -> float:
        """Seconds that never jump, for durations and deadlines."""

    def wall(self) -> float:
        """Seconds since the epoch, for records that people read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """One entry of `tools/list`."""

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    annotations: dict[str, bool]


class Tool(Protocol[PlanT_co]):
    """A tool: its description for clients, and its arguments as a plan."""

    name: str
    uses_protocol_errors: bool
    """Whether refusals and faults are JSON-RPC errors. Otherwise they are results, which a model can read."""

    def describe(self) -> ToolDescription: ...

    def split(self, arguments: JsonValue) -> Sequence[JsonValue]:
        """Return the arguments of each step. A tool without steps, or with malformed ones, returns all in one."""

    def plan(self, arguments: JsonValue) -> PlanT_co:
        """Plan one step. Raises: ArgumentsInvalid, PolicyBlocked."""


class Resolver(Protocol):
    """Resolves host names."""

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """Return all addresses of a host name. A name that does not exist has none; it is not an error."""


class Policy(Protocol[PlanT_contra]):
    """Pure rules over a plan and the addresses of its hosts."""

    def hosts_to_resolve(self, plan: PlanT_contra, /) -> Sequence[str]:
        """Return the hosts whose addresses `decide` needs."""

    def decide(self, plan: PlanT_contra, addresses: Mapping[str, Sequence[IpAddress]], /) -> Decision: ...


class AuditLog(Protocol):
    """Append-only log of records."""

    async def record(self, record: AuditRecord) -> None:
        """Write a record. Records of kinds that announce an act, and durable ones, are on the disk on return.

        Raises: AuditUnavailable.
        """


@runtime_checkable
class BeforeHook(Protocol[PlanT]):
    """Sees the plan before the policy judges it."""

    async def before(self, call: ToolCall, plan: PlanT) -> PlanT:
        """Return the plan, changed or not. Raise CallRefused to stop the call."""


@runtime_checkable
class AfterHook(Protocol[PlanT_contra]):
    """Sees the result before the client does."""

    async def after(self, call: ToolCall, plan: PlanT_contra, result: CommandResult) -> CommandResult:
        """Return the result, changed or not. Raise CallRefused to withhold it."""


Hook: TypeAlias = BeforeHook[PlanT] | AfterHook[PlanT]


class Runner(Protocol[PlanT_contra]):
    """Executes plans: the browser, the container sandbox, or `ExecutionRunner`, which selects one of them."""

    async def run(self, call: ToolCall, plan: PlanT_contra, report_progress: ReportProgress, /) -> CommandResult:
        """Execute a plan that was judged and recorded.

        Raises: ExecutionTimedOut, SandboxUnavailable, SandboxViolation, SessionGone, ArgumentsInvalid, TryLater,
        AuditUnavailable.
        """


class StepRunner(Runner[PlanT_contra], Protocol[PlanT_contra]):
    """A runner that can also execute the steps of one call without other calls in between."""

    def hold(self, call: ToolCall, plan: PlanT_contra, /) -> AbstractAsyncContextManager[Runner[PlanT_contra]]:
        """Reserve what the plan of the first step uses. The yielded runner executes the steps within one timeout.

        Raises: ExecutionTimedOut, SandboxUnavailable, TryLater, AuditUnavailable.
        """


class CallLease(Protocol):
    """Permission to run one call. The holder settles it exactly once, however the call ends."""

    async def begin(self, step: ToolCall, *, after: CommandResult | None = None) -> None:
        """Charge the step that ran so far, whose result is `after`, and look up the budget of the next one.

        Raises: BudgetExceeded, LimitsUnavailable.
        """

    def running(self) -> AbstractAsyncContextManager[None]:
        """Measure the execution inside the block, and cancel it when the budget of its task is used up.

        Raises: BudgetExceeded, unless the block raised a more important error (`errors.PRECEDENCE`).
        """

    async def settle(self, result: CommandResult | None) -> None:
        """Release the concurrency slot and charge the last step. `result` is None if it was cancelled. Never raises."""


class Limits(Protocol):
    """Rate, quota, concurrency and budgets."""

    async def admit(self, call: ToolCall, *, steps: int = 1) -> CallLease:
        """Admit a call, given as its first step. Every step counts against rate and quota.

        Raises: BudgetExceeded, RateLimited, LimitsUnavailable.
        """


class ContainerEngine(Protocol):
    """Runs programs in disposable containers."""

    async def image_id(self, image: str) -> str:
        """Return the local id of an image. Images are never pulled. Raises: SandboxUnavailable if it is missing."""

    async def run(
        self,
        order: ContainerOrder,
        *,
        on_output: Callable[[bytes], None],
        before_start: Callable[[str], Awaitable[None]],
    ) -> ContainerReport:
        """Run one container and return when it is removed. Cancellation kills the container and waits for its removal.

        `on_output` receives all output of the program, also the part beyond the limit of the log.
        `before_start` receives the id of the created container before a program runs in it.

        Raises: SandboxUnavailable if the engine does not answer; SandboxViolation if the order exceeds the limits of
        the engine.
        """

    async def sweep(self, before_remove: Callable[[str, str], Awaitable[None]]) -> list[str]:
        """Remove containers that earlier servers left behind; return the ids of their runs.

        `before_remove` receives the ids of the run and of the container. If it raises, the sweep ends and the
        container stays.
        """


class CallHandler(Protocol):
    """The pipeline as the MCP endpoint uses it."""

    def tools(self) -> Sequence[ToolDescription]: ...

    def handle(self, call: ToolCall, report_progress: ReportProgress = ignore_progress, /) -> Awaitable[ToolOutcome]:
        """Raises: UnknownTool; PolicyBlocked for a reserved tool name."""


class SessionWindows(Protocol):
    """The windows on the display, for viewers."""

    def count(self) -> int:
        """Return the number of open sessions, over all subjects."""

    def windows(self, subject: str) -> Sequence[SessionWindow]: ...

    async def bring_to_front(self, subject: str, session_id: str) -> None:
        """Raise the window of a session. Does nothing without such a session, or without a browser."""

    async def show_latest(self) -> None:
        """Raise the window of the session that was used last, slowly enough for people to follow."""
