"""Run one tool call with its steps. Nothing is executed before all steps are planned and allowed by the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Generic, NoReturn

import anyio
import structlog

from browser_shell.core.access import Activity, HumanControl, refuse_while_human_controls
from browser_shell.core.calls import BrowserCommand, CommandResult, ContainerJob, Plan, ToolCall, ToolOutcome
from browser_shell.core.decisions import IpAddress, refusal_of
from browser_shell.core.errors import (
    AuditUnavailable,
    BrowserShellError,
    BudgetExceeded,
    CallRefused,
    ExecutionTimedOut,
    HookFailed,
    UnknownTool,
)
from browser_shell.core.ports import (
    AuditLog,
    CallLease,
    Clock,
    Limits,
    PlanT,
    Policy,
    ReportProgress,
    Resolver,
    Runner,
    StepRunner,
    Tool,
    ToolDescription,
    ignore_progress,
)
from browser_shell.core.records import AuditRecord, RecordKind, SecretText
from browser_shell.hooks.chain import HookChain
from browser_shell.hooks.redact import redact_text
from browser_shell.outcomes import StepReport, failed_result, outcome_of_call, outcome_of_steps
from browser_shell.policy.commands import named_subcommand
from browser_shell.tools.registry import ToolRegistry

LOOKUP_SECONDS = 10
"""Timeout of all DNS lookups of one call."""
HOOKS_SECONDS = 10
"""Timeout of all before-hooks of one call, and of all its after-hooks."""
RUNNER_GRACE_SECONDS = 10
"""The runner enforces the timeout of the plan. The pipeline cancels it this long after timeout and overhead."""
LAST_RECORD_SECONDS = 5
"""Timeout of the records that report the end of a call."""
MAX_TOOL_NAME_CHARACTERS = 64
COMMAND_RULE_PREFIX = "command."
"""Prefix of the ids of rules about subcommands, operands and options. Their refusals have an additional record."""
NOT_RUN = "NOT_RUN"
"""Error in the last record of a step that did not run because another step of the call failed or was refused."""

log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class _Step(Generic[PlanT]):
    """The progress of one step. All audit records of the step are made from it."""

    call: ToolCall
    """The call with the arguments of this step alone."""
    started_at: float
    """Monotonic seconds."""
    plan: PlanT | None = None
    judged_ms: float | None = None
    ran_ms: float | None = None
    """None if nothing was executed."""
    result: CommandResult | None = None
    """None until the step ends. It stays None if the step is cancelled or not reached."""
    is_finished: bool = False
    """Whether the end of the step is recorded."""

    @property
    def name(self) -> str:
        return self.plan.name if self.plan else named_subcommand(self.call.arguments)


@dataclass(slots=True, kw_only=True)
class _CallState(Generic[PlanT]):
    """The progress of one call."""

    call: ToolCall
    steps: Sequence[_Step[PlanT]]
    position: int = 0
    """Index of the step that is planned, judged or executed now."""
    tool: Tool[PlanT] | None = None
    lease: CallLease | None = None
    runner: Runner[PlanT] | None = None
    """Set when the first step is executed."""
    runs_until: float = 0.0
    """Monotonic seconds at which the pipeline cancels the runner. Set when the first step is executed."""
    held: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Closed after the last step. Holds the session of a call with several steps."""

    @property
    def current(self) -> _Step[PlanT]:
        return self.steps[self.position]

    @property
    def following_name(self) -> str:
        """The subcommand of the step after the current one; '' for the last."""
        following = self.steps[self.position + 1 : self.position + 2]
        return named_subcommand(following[0].call.arguments) if following else ""

    def each(self) -> Iterator[_Step[PlanT]]:
        """Make each step the current one, and yield it."""
        for position in range(len(self.steps)):
            self.position = position
            yield self.current


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(Generic[PlanT]):
    """Handles tool calls, from their arguments to their outcomes."""

    registry: ToolRegistry[PlanT]
    limits: Limits
    hooks: HookChain[PlanT]
    policy: Policy[PlanT]
    resolver: Resolver
    audit: AuditLog
    runner: StepRunner[PlanT]
    human: HumanControl
    show_activity: Callable[[Activity], None]
    """Adds one line to the activity list of the live view."""
    clock: Clock
    max_output_characters: int = 30_000
    """Limit of stdout of a call with several steps. The hooks limit the data of each step."""

    def tools(self) -> Sequence[ToolDescription]:
        return tuple(tool.describe() for tool in self.registry.all())

    async def handle(self, call: ToolCall, report_progress: ReportProgress = ignore_progress) -> ToolOutcome:
        """Run one call and return its outcome.

        Raises: UnknownTool; PolicyBlocked for a reserved tool name. All other errors become outcomes.
        """
        state = self._split(call)
        try:
            await self._run(state, report_progress)
        except BrowserShellError as error:
            state.current.result = replace(failed_result(error), run_id=_run_id(state.current, error))
            if state.tool is None and isinstance(error, UnknownTool | CallRefused):
                raise  # An unknown or reserved tool name is a protocol error and has no outcome.
        except Exception:
            log.exception("call_failed", call_id=call.call_id)
            state.current.result = failed_result(BrowserShellError("the server failed on this call"))
        finally:
            await self._finish(state)
        return self._outcome(state)

    def _split(self, call: ToolCall) -> _CallState[PlanT]:
        try:
            arguments = self.registry.get(call.tool).split(call.arguments)
        except (CallRefused, UnknownTool):  # `_run` looks the tool up again, when the call is recorded.
            arguments = (call.arguments,)
        calls = [replace(call, arguments=each, step=number) for number, each in enumerate(arguments, start=1)]
        if len(calls) == 1:
            calls = [replace(calls[0], step=0)]
        return _CallState(call=call, steps=[_Step(call=each, started_at=self.clock.monotonic()) for each in calls])

    async def _run(self, state: _CallState[PlanT], report_progress: ReportProgress) -> None:
        for step in state.steps:
            await self._record(step, RecordKind.MCP_TOOL_CALL)
        try:
            # Calls of unknown tools do not count against the limits, because refusing them costs nothing.
            state.tool = self.registry.get(state.call.tool)
            state.lease = lease = await self.limits.admit(state.steps[0].call, steps=len(state.steps))
            plans = await self._allowed_plans(state, state.tool)
        except (CallRefused, UnknownTool) as refusal:
            await self._refuse(state, refusal)
        # From here on the plans do not change: the plans that were judged are the plans that run.
        async with state.held:
            for step, plan in zip(state.each(), plans, strict=True):
                if state.position > 0:
                    await self._continue(state, lease)
                await self._record(step, RecordKind.SANDBOX_EXEC)
                result = await self._execute(state, lease, plan, report_progress)
                withheld = "the command ran, but a hook failed, so its result is withheld"
                with _hook_failures(step.call, "hook.after", withheld):
                    step.result = await self.hooks.after(step.call, plan, result)
                if step.result.error is not None:
                    return

    async def _allowed_plans(self, state: _CallState[PlanT], tool: Tool[PlanT]) -> Sequence[PlanT]:
        """Plan all steps and judge the plans. Raises: CallRefused; then `state.current` is the refused step."""
        plans: list[PlanT] = []
        for step in state.each():
            step.plan = _followed_by(tool.plan(step.call.arguments), state.following_name)
            plans.append(step.plan)
        with _hook_failures(state.call, "hook.before", "a hook failed before the command; nothing ran"):
            for index, step in enumerate(state.each()):
                step.plan = plans[index] = await self.hooks.before(step.call, plans[index])
        addresses = await self._resolve_hosts(plans)
        for _, plan in zip(state.each(), plans, strict=True):
            decision = self.policy.decide(plan, addresses)
            if not decision.allowed:
                raise refusal_of(decision)
        state.position = 0
        refuse_while_human_controls(self.human)
        for step in state.steps:
            step.judged_ms = self._milliseconds_since(step.started_at)
        return plans

    async def _resolve_hosts(self, plans: Sequence[PlanT]) -> dict[str, Sequence[IpAddress]]:
        hosts = [host for plan in plans for host in self.policy.hosts_to_resolve(plan)]
        addresses: dict[str, Sequence[IpAddress]] = dict.fromkeys(hosts, ())
        # After the timeout the remaining hosts have no addresses, and the policy refuses such hosts.
        with anyio.move_on_after(LOOKUP_SECONDS):
            for host in addresses:
                addresses[host] = await self.resolver.resolve(host)
        return addresses

    async def _continue(self, state: _CallState[PlanT], lease: CallLease) -> None:
        """Finish the previous step and admit the current one. Raises: CallRefused."""
        previous, step = state.steps[state.position - 1], state.current
        await self._finish_steps(state, [previous])
        step.started_at = self.clock.monotonic()
        try:
            await lease.begin(step.call, after=previous.result)
            refuse_while_human_controls(self.human)
        except CallRefused as refusal:
            await self._record_refusal(step, refusal)
            raise

    async def _execute(
        self, state: _CallState[PlanT], lease: CallLease, plan: PlanT, report_progress: ReportProgress
    ) -> CommandResult:
        step, started_at = state.current, self.clock.monotonic()
        if state.position == 0:
            state.runs_until = started_at + plan.timeout_seconds + plan.overhead_seconds + RUNNER_GRACE_SECONDS
        try:
            async with lease.running():
                with anyio.move_on_after(state.runs_until - started_at):
                    if state.runner is None:
                        state.runner = await state.held.enter_async_context(self._runner_of(state, plan))
                    return await state.runner.run(step.call, plan, _redacting(report_progress))
                raise ExecutionTimedOut(f"{plan.name} did not end within {plan.timeout_seconds} s")
        finally:
            step.ran_ms = self._milliseconds_since(started_at)

    def _runner_of(self, state: _CallState[PlanT], plan: PlanT) -> AbstractAsyncContextManager[Runner[PlanT]]:
        return nullcontext(self.runner) if len(state.steps) == 1 else self.runner.hold(state.call, plan)

    async def _finish(self, state: _CallState[PlanT]) -> None:
        """Settle the lease, write the last records and show the call to viewers. Runs for cancelled calls, too."""
        if state.lease is not None:
            await state.lease.settle(state.current.result)
        await self._finish_steps(state, [step for step in state.steps if not step.is_finished])

    async def _finish_steps(self, state: _CallState[PlanT], steps: Sequence[_Step[PlanT]]) -> None:
        # The steps are over, so their results are returned even if these records fail.
        with anyio.move_on_after(LAST_RECORD_SECONDS, shield=True) as deadline:
            for step in steps:
                step.is_finished = True
                try:
                    await self._record(step, RecordKind.TOOL_FINISHED, is_current=step is state.current)
                except AuditUnavailable:
                    log.exception("last_record_failed", call_id=step.call.call_id)
        if deadline.cancelled_caught:
            log.error("last_record_timed_out", call_id=state.call.call_id)
        for step in steps:
            if step.result is not None or step is state.current:
                self.show_activity(self._activity(step))

    async def _refuse(self, state: _CallState[PlanT], refusal: CallRefused | UnknownTool) -> NoReturn:
        """Record the refusal of the current step and raise it, or BudgetExceeded if it was refused too often."""
        try:
            if state.lease is not None and state.position > 0:
                await state.lease.begin(state.current.call)
        except CallRefused as limit_refusal:
            refusal = limit_refusal
        await self._record_refusal(state.current, refusal)
        raise refusal

    async def _record_refusal(self, step: _Step[PlanT], refusal: CallRefused | UnknownTool) -> None:
        step.result = failed_result(refusal)
        step.judged_ms = self._milliseconds_since(step.started_at)
        if refusal.rule_id.startswith(COMMAND_RULE_PREFIX):
            await self._record(step, RecordKind.MCP_COMMAND_BLOCKED)
        await self._record(step, RecordKind.POLICY_BLOCKED)

    async def _record(self, step: _Step[PlanT], kind: RecordKind, *, is_current: bool = True) -> None:
        call, plan, result = step.call, step.plan, step.result
        finished = kind is RecordKind.TOOL_FINISHED
        was_reached = result is not None or is_current
        unfinished = ("CANCELLED" if was_reached else NOT_RUN) if finished else ""
        await self.audit.record(
            AuditRecord(
                kind=kind,
                call_id=call.call_id,
                subject=call.principal.subject,
                tool=call.tool[:MAX_TOOL_NAME_CHARACTERS],
                session_id=call.session_id,
                trace_id=call.trace_id,
                subcommand=step.name,
                step=call.step or None,
                host=plan.host if plan else "",
                rule_id=result.rule_id if result else "",
                error=_error_name(result, unfinished=unfinished),
                exit_code=result.exit_code if result else None,
                run_id=result.run_id if result else "",
                sha256=result.evidence_sha256 if result else "",
                judged_ms=step.judged_ms,
                ran_ms=step.ran_ms,
                duration_ms=self._milliseconds_since(step.started_at) if finished and was_reached else None,
                text=_typed_text(plan, kind),
            )
        )

    def _activity(self, step: _Step[PlanT]) -> Activity:
        """Describe the step for viewers, without typed text and without the path of a URL."""
        plan, result = step.plan, step.result
        host = plan.host if plan else ""
        rule_id = result.rule_id if result else ""
        return Activity(
            at=self.clock.wall(),
            subject=step.call.principal.subject,
            session_id=step.call.session_id,
            what=plan.name if plan else "",
            result=_error_name(result, unfinished="CANCELLED") or "ok",
            detail=" ".join(filter(None, (host, rule_id))),
            duration_ms=self._milliseconds_since(step.started_at),
        )

    def _outcome(self, state: _CallState[PlanT]) -> ToolOutcome:
        if len(state.steps) > 1:
            return outcome_of_steps(
                state.call,
                [StepReport(name=step.name, result=step.result) for step in state.steps],
                was_executed=any(step.ran_ms is not None for step in state.steps),
                max_characters=self.max_output_characters,
            )
        return outcome_of_call(state.call, state.tool, state.current.result or CommandResult(exit_code=0))

    def _milliseconds_since(self, start: float) -> float:
        return round((self.clock.monotonic() - start) * 1000, 1)


def _followed_by(plan: PlanT, name: str) -> PlanT:
    return replace(plan, next_step=name) if name and isinstance(plan, BrowserCommand) else plan


@contextmanager
def _hook_failures(call: ToolCall, rule_id: str, message: str) -> Iterator[None]:
    """Limit the time of hooks, and raise HookFailed for all their errors but CallRefused."""
    try:
        with anyio.fail_after(HOOKS_SECONDS):
            yield
    except CallRefused:
        raise
    except Exception as error:
        log.exception("hook_failed", call_id=call.call_id, rule_id=rule_id)
        raise HookFailed(message, rule_id=rule_id) from error


def _redacting(report_progress: ReportProgress) -> ReportProgress:
    """Wrap `report_progress` so that messages are redacted. They do not pass through the after-hooks."""

    async def report_redacted(done: float, total: float, message: str) -> None:
        await report_progress(done, total, redact_text(message))

    return report_redacted


def _typed_text(plan: Plan | None, kind: RecordKind) -> SecretText | None:
    """Return the text that the command types if this is the record of the decision; otherwise None."""
    is_decision = kind in (RecordKind.SANDBOX_EXEC, RecordKind.POLICY_BLOCKED)
    text = plan.typed_text if isinstance(plan, BrowserCommand) and is_decision else None
    return SecretText(text) if text is not None else None


def _error_name(result: CommandResult | None, *, unfinished: str) -> str:
    """Return the name of the error code, '' without an error, or `unfinished` without a result."""
    if result is None:
        return unfinished
    return result.error.name if result.error else ""


def _run_id(step: _Step[PlanT], error: BrowserShellError) -> str:
    """Return the id of a job that ran before this error, so that its evidence can be found; '' if no job ran."""
    job_was_executed = step.ran_ms is not None and isinstance(step.plan, ContainerJob)
    # The container runner raises other errors only if the job did not run or left no evidence.
    has_evidence = isinstance(error, BudgetExceeded | ExecutionTimedOut | HookFailed)
    return step.call.call_id if job_was_executed and has_evidence else ""
