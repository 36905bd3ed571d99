"""The contracts by which packages that may not import each other meet. `app.py` joins them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypeVar

from browser_shell.core.access import Activity, SessionWindow
from browser_shell.core.calls import Principal, ToolCall
from browser_shell.core.containers import ContainerOrder, ContainerReport
from browser_shell.core.decisions import Decision
from browser_shell.core.egress import Denial, Requester
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.pages import Dialog, Tab
from browser_shell.core.plans import BrowserCommand, ContainerJob, Plan, UrlTarget
from browser_shell.core.records import AuditRecord, Receipt
from browser_shell.core.results import CommandResult, ToolOutcome

IpAddress: TypeAlias = IPv4Address | IPv6Address
NewId: TypeAlias = Callable[[], str]
ReportProgress: TypeAlias = Callable[[float, float, str], Awaitable[None]]
"""How far a call is, out of how much, and in words. Telling never fails: who does not listen has not asked."""

# A pipeline serves one kind of plan, and the type checker keeps the kinds apart. Who names no kind means the browser.
PlanT = TypeVar("PlanT", bound=Plan, default=BrowserCommand)
PlanT_co = TypeVar("PlanT_co", bound=Plan, covariant=True, default=BrowserCommand)
PlanT_contra = TypeVar("PlanT_contra", bound=Plan, contravariant=True, default=BrowserCommand)


async def ignore_progress(done: float, total: float, message: str) -> None:
    """For calls whose caller did not ask."""


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds that never jump; for durations and deadlines."""

    def wall(self) -> float:
        """Seconds since the epoch; for records that people read."""


class Tool(Protocol[PlanT_co]):
    """A tool as clients see it, and the step from its arguments to a plan."""

    name: str
    fails_by_protocol: bool
    """Whether refusals and faults are errors of JSON-RPC; else they are results that a model reads."""

    def describe(self) -> ToolDescription: ...

    def plan(self, arguments: JsonValue) -> PlanT_co:
        """Raises: ArgumentsInvalid, PolicyBlocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """One entry of `tools/list`."""

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    annotations: dict[str, bool]


class Registry(Protocol[PlanT_co]):
    """The tools of this server."""

    def get(self, name: str) -> Tool[PlanT_co]:
        """Raises: UnknownTool; PolicyBlocked for a reserved name."""

    def all(self) -> Sequence[Tool[PlanT_co]]:
        """Always in the same order."""


class Resolver(Protocol):
    """Turns a host name into addresses."""

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """Every address of the name; empty when there is none. Never raises for a name that does not exist."""


class Policy(Protocol[PlanT_contra]):
    """Pure rules over a plan and the addresses its hosts resolved to."""

    def needs_lookup(self, plan: PlanT_contra, /) -> Sequence[str]:
        """Hosts whose addresses `decide` must know."""

    def decide(self, plan: PlanT_contra, answers: dict[str, Sequence[IpAddress]], /) -> Decision: ...


class DialAddress(Protocol):
    """Where to connect instead of where DNS says."""

    @property
    def address(self) -> IpAddress: ...
    @property
    def port(self) -> int: ...


class EgressRules(Protocol):
    """The same rules as for `open`, for one connection."""

    def judge_name(self, target: UrlTarget) -> Decision | None:
        """What can be said without a lookup; None when the addresses decide."""

    def judge(self, target: UrlTarget, addresses: Sequence[IpAddress]) -> Decision: ...

    def resolved_by_policy(self, host: str) -> DialAddress | None: ...


class AuditLog(Protocol):
    """Append-only evidence."""

    async def record(self, record: AuditRecord) -> None:
        """Written when it returns, and on the disk too when something is about to run, or the record asks for it.

        Raises: AuditUnavailable.
        """


class ReceiptLog(AuditLog, Protocol):
    """A log that says where a record stands, for evidence that names it."""

    async def append(self, record: AuditRecord) -> Receipt:
        """Like `record`. Raises: AuditUnavailable."""


@runtime_checkable
class BeforeHook(Protocol[PlanT]):
    """Sees the plan before the policy judges it."""

    async def before(self, call: ToolCall, plan: PlanT) -> PlanT:
        """Return the plan, changed or not. Raise CallRefused to stop the call."""


@runtime_checkable
class AfterHook(Protocol[PlanT_contra]):
    """Sees the result before the client does."""

    async def after(self, call: ToolCall, plan: PlanT_contra, result: CommandResult) -> CommandResult: ...


Hook: TypeAlias = BeforeHook[PlanT] | AfterHook[PlanT]


class Sandbox(Protocol):
    """Runs a command in a browser that can do no harm."""

    async def run(self, principal: Principal, plan: BrowserCommand) -> CommandResult:
        """Raises: ExecutionTimedOut, SandboxUnavailable, TryLater."""


class JobSandbox(Protocol):
    """Runs a job in a container that can do no harm."""

    async def run(self, call: ToolCall, plan: ContainerJob, tell: ReportProgress) -> CommandResult:
        """Raises: SandboxUnavailable, SandboxViolation, ArgumentsInvalid, TryLater, AuditUnavailable."""


class Runner(Protocol[PlanT_contra]):
    """Finds the backend of a plan."""

    async def run(self, call: ToolCall, plan: PlanT_contra, tell: ReportProgress) -> CommandResult:
        """Raises: what the backend raises."""


class CallLease(Protocol):
    """Leave to run one call. Whoever got it settles it, however the call ends."""

    def running(self, most_seconds: float) -> AbstractAsyncContextManager[None]:
        """Wraps the execution: counts its time, and ends it when the budget of its task is used up.

        It takes at most `most_seconds` by itself, so that a budget which lasts longer need not be watched.

        Raises: BudgetExceeded, unless the block raised something that goes before it (`errors.PRECEDENCE`).
        """

    async def settle(self, result: CommandResult | None) -> None:
        """Gives the place back and charges the budget. `result` is None for a call that was cancelled. Never raises."""


class Limits(Protocol):
    """Rate, quota, concurrency and budgets."""

    async def admit(self, call: ToolCall) -> CallLease:
        """Raises: BudgetExceeded, RateLimited, LimitsUnavailable."""


class ContainerEngine(Protocol):
    """Runs programs in disposable containers."""

    async def image_id(self, image: str) -> str:
        """The local id of an image. Nothing is ever pulled. Raises: SandboxUnavailable when it is not there."""

    async def run(
        self,
        order: ContainerOrder,
        *,
        on_output: Callable[[bytes], None],
        before_start: Callable[[str], Awaitable[None]],
    ) -> ContainerReport:
        """Returns when the container is gone, whoever waits for it, and however it ended; cancelling kills it.

        `on_output` is given all that the program writes, also what the log has no room for.
        `before_start` is given the container's id after it was made and before anything runs in it.

        Raises: SandboxUnavailable when the engine cannot be asked, SandboxViolation when an order asks for more than
        the engine grants.
        """

    async def sweep(self, before_remove: Callable[[str, str], Awaitable[None]]) -> list[str]:
        """Removes the containers that a server of ours left behind; returns the ids of their runs.

        `before_remove` is given the ids of a run and of its container, while that is still there. What it raises ends
        the sweep, and the container stays.
        """


class CallHandler(Protocol):
    """What the endpoint needs of the pipeline."""

    def tools(self) -> Sequence[ToolDescription]: ...

    def handle(self, call: ToolCall, tell: ReportProgress = ignore_progress) -> Awaitable[ToolOutcome]:
        """Raises: UnknownTool, PolicyBlocked for a reserved tool name."""


class DriverProcesses(Protocol):
    """What sessions need of the driver: that nothing of it outlives them."""

    async def kill(self, name: str) -> None:
        """Ends the daemon of the driver's session `name` at once and removes its files."""


class DenialReader(Protocol):
    """Connections that the egress proxy refused."""

    def since(self, requester: Requester, moment: float) -> list[Denial]: ...


class BrowserSession(Protocol):
    """One session, held by one call at a time."""

    name: str
    """The driver's name for it."""
    directory: Path
    """Where files made for this session go."""
    active: str
    """Target id of the tab that commands act on."""
    bound: str
    """Target id that the driver acts on."""
    denials_told: float
    """Refused connections before this monotonic moment have been told to the agent."""

    async def prepare(self, *, starts_page: bool) -> list[str]:
        """Raises: SessionGone, BrowserUnavailable."""

    async def refresh_tabs(self) -> None: ...

    def tabs(self) -> list[Tab]: ...

    def target_of(self, tab_id: str) -> str | None: ...

    def dialog(self) -> Dialog | None: ...

    def take_alerts(self) -> list[str]:
        """What pages said in alerts since this was asked last, the last few."""

    def watch(self, on_trouble: Callable[[], None] | None) -> None:
        """Calls it whenever a dialog opens or a tab goes, and at once where that has happened already.

        Until another one is given, or None.
        """

    async def tab_closing(self) -> None: ...

    async def answer_dialog(self, *, accept: bool, text: str | None) -> None: ...

    async def close_tab(self, target_id: str) -> None: ...

    async def abandon_page(self) -> None: ...

    async def browser_is_gone(self) -> bool:
        """Whether the browser that held this session's pages has ended, or does so within a moment."""


class BrowserSessions(Protocol):
    """All sessions of the box."""

    def hold(self, subject: str, session_id: str) -> AbstractAsyncContextManager[BrowserSession]:
        """Raises: TryLater."""

    def name_of(self, subject: str, session_id: str) -> str:
        """The driver's name for a session, whether it is open or not."""

    async def close(self, subject: str, session_id: str) -> bool: ...


class HumanControl(Protocol):
    """Whether a person has the mouse."""

    def seconds_left(self) -> float:
        """How long agents should wait; 0 when no person is in control."""


class SessionWindows(Protocol):
    """The windows on the display, for people who watch."""

    def count(self) -> int:
        """Open sessions of everybody."""

    def windows(self, subject: str) -> Sequence[SessionWindow]: ...

    async def bring_to_front(self, subject: str, session_id: str) -> None:
        """Nothing happens when there is no such session, or no browser."""

    async def show_latest(self) -> None:
        """Brings the session that was used last to the front, at a pace that people can follow."""


class ActivityFeed(Protocol):
    """What happened lately, for people who watch."""

    def add(self, activity: Activity) -> None: ...
