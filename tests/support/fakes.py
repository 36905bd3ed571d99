"""Fakes of the protocols in core/ports.py, well-behaved and faulty ones."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import anyio.lowlevel

from browser_shell.core.access import Activity, HumanControl
from browser_shell.core.calls import BrowserCommand, CommandResult, Principal, ToolCall, UrlTarget
from browser_shell.core.decisions import Decision, IpAddress
from browser_shell.core.errors import (
    ArgumentsInvalid,
    AuditUnavailable,
    BrowserUnavailable,
    ExecutionTimedOut,
    TryLater,
)
from browser_shell.core.json_values import JsonValue
from browser_shell.core.ports import (
    AuditLog,
    Clock,
    Hook,
    Limits,
    Policy,
    ReportProgress,
    Resolver,
    StepRunner,
    ToolDescription,
)
from browser_shell.core.records import AuditRecord, Receipt, RecordKind
from browser_shell.hooks.chain import HookChain
from browser_shell.pipeline import Pipeline
from browser_shell.policy.arguments import split_steps
from browser_shell.runner import ExecutionRunner
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry


@dataclass
class FakeClock:
    """A clock that moves only by `advance`."""

    now: float = 1000.0
    epoch: float = 1_800_000_000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.epoch

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.epoch += seconds


def a_description(name: str = "browser-shell") -> ToolDescription:
    return replace(BrowserShellTool().describe(), name=name)


@dataclass
class FakeTool:
    """Accepts any `argv`: the first item is the subcommand, and an `open` has one target."""

    name: str = "browser-shell"
    uses_protocol_errors: bool = False

    def describe(self) -> ToolDescription:
        return a_description(self.name)

    def split(self, arguments: JsonValue) -> Sequence[JsonValue]:
        return split_steps(arguments)

    def plan(self, arguments: JsonValue) -> BrowserCommand:
        if not isinstance(arguments, dict) or set(arguments) - {"session_id", "argv", "timeout_sec"}:
            raise ArgumentsInvalid("unknown field", rule_id="arguments.fields")
        session_id, argv = arguments.get("session_id"), arguments.get("argv")
        if not isinstance(session_id, str) or not isinstance(argv, list) or not argv:
            raise ArgumentsInvalid("session_id and argv are required", rule_id="arguments.required")
        words = tuple(str(word) for word in argv)
        timeout = arguments.get("timeout_sec", 30)
        return BrowserCommand(
            session_id=session_id,
            name=words[0],
            operands=words[1:],
            timeout_seconds=timeout if isinstance(timeout, int) else 30,
            targets=(a_target(words[1]),) if words[0] == "open" else (),
        )


class UnlimitedLease:
    """A lease without limits, which records its settlements and the steps after the first."""

    def __init__(self) -> None:
        self.settled: list[CommandResult | None] = []
        self.continued: list[tuple[ToolCall, CommandResult | None]] = []

    async def begin(self, step: ToolCall, *, after: CommandResult | None = None) -> None:
        self.continued.append((step, after))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    async def settle(self, result: CommandResult | None) -> None:
        self.settled.append(result)


@dataclass
class NoLimits:
    """Admits every call."""

    leases: list[UnlimitedLease] = field(default_factory=list)

    async def admit(self, call: ToolCall, *, steps: int = 1) -> UnlimitedLease:
        self.leases.append(UnlimitedLease())
        return self.leases[-1]


@dataclass
class FakePolicy:
    """Allows everything except the hosts in `blocked_hosts`."""

    blocked_hosts: frozenset[str] = frozenset()
    judged: list[tuple[BrowserCommand, Mapping[str, Sequence[IpAddress]]]] = field(default_factory=list)

    def hosts_to_resolve(self, command: BrowserCommand, /) -> Sequence[str]:
        return [target.host for target in command.targets]

    def decide(self, command: BrowserCommand, addresses: Mapping[str, Sequence[IpAddress]], /) -> Decision:
        self.judged.append((command, addresses))
        for target in command.targets:
            if target.host in self.blocked_hosts:
                return Decision(allowed=False, rule_id="host.blocked", reason=f"{target.host} is blocked")
        return Decision(allowed=True, rule_id="host.allowed", reason="nothing is blocked")


@dataclass
class FakeResolver:
    answers: Mapping[str, Sequence[IpAddress]] = field(default_factory=dict)

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        return self.answers.get(host, ())


class SilentResolver:
    """A name server that never answers."""

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        await anyio.sleep_forever()
        return ()


@dataclass
class RecordingAudit:
    records: list[AuditRecord] = field(default_factory=list)
    finished: anyio.Event = field(default_factory=anyio.Event)
    """Set by the first record of a finished call."""

    async def record(self, record: AuditRecord) -> None:
        await anyio.lowlevel.checkpoint()
        self.records.append(record)
        if record.kind is RecordKind.TOOL_FINISHED:
            self.finished.set()

    async def append(self, record: AuditRecord) -> Receipt:
        await self.record(record)
        return Receipt(sequence=len(self.records), sha256="0" * 64)

    @property
    def kinds(self) -> list[str]:
        return [record.kind.value for record in self.records]


@dataclass
class FullDiskAudit(RecordingAudit):
    """Fails from the first record of kind `full_at` on, like a log on a full disk."""

    full_at: RecordKind = RecordKind.MCP_TOOL_CALL
    full: bool = False

    async def record(self, record: AuditRecord) -> None:
        self.full = self.full or record.kind is self.full_at
        if self.full:
            raise AuditUnavailable("no space left on the audit disk")
        await super().record(record)


@dataclass
class HangingAudit(RecordingAudit):
    """Hangs on the last record of a call."""

    async def record(self, record: AuditRecord) -> None:
        if record.kind is RecordKind.TOOL_FINISHED:
            await anyio.sleep_forever()
        await super().record(record)


@dataclass
class RecordingSandbox:
    """Returns the same result for every plan, and records the plans."""

    result: CommandResult = field(default_factory=lambda: CommandResult(exit_code=0, data={"ok": True}))
    ran: list[tuple[Principal, BrowserCommand]] = field(default_factory=list)
    is_held: bool = False
    """Whether a call with several steps runs now."""

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        self.ran.append((call.principal, plan))
        return self.result

    @asynccontextmanager
    async def hold(self, call: ToolCall, plan: BrowserCommand) -> AsyncIterator[RecordingSandbox]:
        self.is_held = True
        try:
            yield self
        finally:
            self.is_held = False


@dataclass
class HangingSandbox(RecordingSandbox):
    """Never returns, like a page with an endless loop."""

    started: anyio.Event = field(default_factory=anyio.Event)
    stopped: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        self.ran.append((call.principal, plan))
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.stopped.set()
        return self.result


@dataclass
class BrokenSandbox(RecordingSandbox):
    """Fails with the given error."""

    error: Exception = field(default_factory=lambda: BrowserUnavailable("Chromium is restarting"))

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        self.ran.append((call.principal, plan))
        raise self.error


@dataclass
class FakePerson:
    """A person who stays in control for `seconds`."""

    seconds: float = 0.0

    def seconds_left(self) -> float:
        return self.seconds


@dataclass
class RecordingActivity:
    entries: list[Activity] = field(default_factory=list)

    def add(self, activity: Activity) -> None:
        self.entries.append(activity)


def timing_out_sandbox() -> BrokenSandbox:
    return BrokenSandbox(error=ExecutionTimedOut("open did not end within 30 s"))


def full_sandbox() -> BrokenSandbox:
    return BrokenSandbox(error=TryLater("8 sessions are open", rule_id="sessions.max", retry_after_seconds=5))


def a_target(url: str) -> UrlTarget:
    """Return a target for a simple URL. The host is the text between `//` and the next slash."""
    scheme, _, rest = url.partition("://")
    return UrlTarget(href=url, scheme=scheme, host=rest.partition("/")[0], port=443)


def a_plan(name: str = "snapshot", *operands: str, options: Mapping[str, str] | None = None) -> BrowserCommand:
    return BrowserCommand(session_id="s1", name=name, operands=operands, options=options or {}, timeout_seconds=30)


def a_call(
    *argv: str,
    tool: str = "browser-shell",
    session_id: JsonValue = "s1",
    subject: str = "local",
    then: Sequence[Sequence[str]] | None = None,
) -> ToolCall:
    words: list[JsonValue] = list(argv or ("snapshot",))
    further: dict[str, JsonValue] = {} if then is None else {"then": [list(step) for step in then]}
    return ToolCall(
        call_id="call-1",
        principal=Principal(subject=subject),
        tool=tool,
        arguments={"session_id": session_id, "argv": words, **further},
    )


def a_pipeline(
    *,
    registry: ToolRegistry | None = None,
    limits: Limits | None = None,
    hooks: Iterable[Hook] = (),
    policy: Policy | None = None,
    resolver: Resolver | None = None,
    audit: AuditLog | None = None,
    sandbox: StepRunner | None = None,
    human: HumanControl | None = None,
    show_activity: Callable[[Activity], None] | None = None,
    clock: Clock | None = None,
) -> Pipeline:
    return Pipeline(
        registry=registry or ToolRegistry([FakeTool()]),
        limits=limits or NoLimits(),
        hooks=HookChain(hooks=tuple(hooks)),
        policy=policy or FakePolicy(),
        resolver=resolver or FakeResolver(),
        audit=audit or RecordingAudit(),
        runner=ExecutionRunner(browser=sandbox or RecordingSandbox()),
        human=human or FakePerson(),
        show_activity=show_activity or RecordingActivity().add,
        clock=clock or FakeClock(),
    )


def numbered_ids() -> Iterable[str]:
    return (f"call-{number}" for number in itertools.count(1))
