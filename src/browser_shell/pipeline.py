"""Run one tool call. Nothing is executed before the call is planned, allowed by the policy and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic

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
    SandboxUnavailable,
    TryLater,
    UnknownTool,
)
from browser_shell.core.json_values import compact_json
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
    Tool,
    ToolDescription,
    ignore_progress,
)
from browser_shell.core.records import AuditRecord, RecordKind, SecretText
from browser_shell.hooks.chain import HookChain
from browser_shell.hooks.redact import redact_text
from browser_shell.policy.commands import named_subcommand
from browser_shell.tools.registry import ToolRegistry

LOOKUP_SECONDS = 10
"""Timeout of all DNS lookups of one call."""
HOOKS_SECONDS = 10
"""Timeout of all before-hooks of one call, and of all its after-hooks."""
RUNNER_GRACE_SECONDS = 10
"""The runner enforces the timeout of the plan. The pipeline cancels it this long after timeout and overhead."""
LAST_RECORD_SECONDS = 5
"""Timeout of the record that reports the end of a call."""
MAX_REASON_CHARACTERS = 6_000
MAX_TOOL_NAME_CHARACTERS = 64
COMMAND_RULE_PREFIX = "command."
"""Prefix of the ids of rules about subcommands, operands and options. Their refusals have an additional record."""

log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class _CallState(Generic[PlanT]):
    """The progress of one call. All audit records of the call are made from it."""

    call: ToolCall
    started_at: float
    """Monotonic seconds."""
    tool: Tool[PlanT] | None = None
    lease: CallLease | None = None
    plan: PlanT | None = None
    judged_ms: float | None = None
    ran_ms: float | None = None
    """None if nothing was executed."""
    result: CommandResult | None = None
    """None until the call ends. It stays None if the call is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(Generic[PlanT]):
    """Handles tool calls, from their arguments to their outcomes."""

    registry: ToolRegistry[PlanT]
    limits: Limits
    hooks: HookChain[PlanT]
    policy: Policy[PlanT]
    resolver: Resolver
    audit: AuditLog
    runner: Runner[PlanT]
    human: HumanControl
    show_activity: Callable[[Activity], None]
    """Adds one line to the activity list of the live view."""
    clock: Clock

    def tools(self) -> Sequence[ToolDescription]:
        return tuple(tool.describe() for tool in self.registry.all())

    async def handle(self, call: ToolCall, report_progress: ReportProgress = ignore_progress) -> ToolOutcome:
        """Run one call and return its outcome.

        Raises: UnknownTool; PolicyBlocked for a reserved tool name. All other errors become outcomes.
        """
        state: _CallState[PlanT] = _CallState(call=call, started_at=self.clock.monotonic())
        try:
            state.result = await self._run(state, report_progress)
        except BrowserShellError as error:
            state.result = replace(_failed_result(error), run_id=_run_id(state, error))
            if state.tool is None and isinstance(error, UnknownTool | CallRefused):
                raise  # An unknown or reserved tool name is a protocol error and has no outcome.
        except Exception:
            log.exception("call_failed", call_id=call.call_id)
            state.result = _failed_result(BrowserShellError("the server failed on this call"))
        finally:
            await self._finish(state)
        return _outcome(call, state.tool, state.result)

    async def _run(self, state: _CallState[PlanT], report_progress: ReportProgress) -> CommandResult:
        await self._record(state, RecordKind.MCP_TOOL_CALL)
        try:
            # Calls of unknown tools do not count against the limits, because refusing them costs nothing.
            state.tool = self.registry.get(state.call.tool)
            state.lease = await self.limits.admit(state.call)
            plan = await self._allowed_plan(state, state.tool)
        except (CallRefused, UnknownTool) as refusal:
            await self._record_refusal(state, refusal)
            raise
        # From here on the plan does not change: the plan that was judged is the plan that runs.
        state.judged_ms = self._milliseconds_since(state.started_at)
        await self._record(state, RecordKind.SANDBOX_EXEC)
        result = await self._execute(state, state.lease, plan, report_progress)
        with _hook_failures(state.call, "hook.after", "the command ran, but a hook failed, so its result is withheld"):
            return await self.hooks.after(state.call, plan, result)

    async def _allowed_plan(self, state: _CallState[PlanT], tool: Tool[PlanT]) -> PlanT:
        """Plan the call and judge the plan. Raises: CallRefused."""
        state.plan = tool.plan(state.call.arguments)
        with _hook_failures(state.call, "hook.before", "a hook failed before the command; nothing ran"):
            state.plan = await self.hooks.before(state.call, state.plan)
        decision = self.policy.decide(state.plan, await self._resolve_hosts(state.plan))
        if not decision.allowed:
            raise refusal_of(decision)
        refuse_while_human_controls(self.human)
        return state.plan

    async def _resolve_hosts(self, plan: PlanT) -> dict[str, Sequence[IpAddress]]:
        addresses: dict[str, Sequence[IpAddress]] = dict.fromkeys(self.policy.hosts_to_resolve(plan), ())
        # After the timeout the remaining hosts have no addresses, and the policy refuses such hosts.
        with anyio.move_on_after(LOOKUP_SECONDS):
            for host in addresses:
                addresses[host] = await self.resolver.resolve(host)
        return addresses

    async def _execute(
        self, state: _CallState[PlanT], lease: CallLease, plan: PlanT, report_progress: ReportProgress
    ) -> CommandResult:
        max_seconds = plan.timeout_seconds + plan.overhead_seconds + RUNNER_GRACE_SECONDS
        execution_started_at = self.clock.monotonic()
        try:
            async with lease.running():
                with anyio.move_on_after(max_seconds):
                    return await self.runner.run(state.call, plan, _redacting(report_progress))
                raise ExecutionTimedOut(f"{plan.name} did not end within {plan.timeout_seconds} s")
        finally:
            state.ran_ms = self._milliseconds_since(execution_started_at)

    async def _finish(self, state: _CallState[PlanT]) -> None:
        """Settle the lease, write the last record and show the call to viewers. Runs for cancelled calls, too."""
        if state.lease is not None:
            await state.lease.settle(state.result)
        # The call is over, so its result is returned even if this record fails.
        with anyio.move_on_after(LAST_RECORD_SECONDS, shield=True) as deadline:
            try:
                await self._record(state, RecordKind.TOOL_FINISHED)
            except AuditUnavailable:
                log.exception("last_record_failed", call_id=state.call.call_id)
        if deadline.cancelled_caught:
            log.error("last_record_timed_out", call_id=state.call.call_id)
        self.show_activity(self._activity(state))

    async def _record_refusal(self, state: _CallState[PlanT], refusal: CallRefused | UnknownTool) -> None:
        state.result = _failed_result(refusal)
        state.judged_ms = self._milliseconds_since(state.started_at)
        if refusal.rule_id.startswith(COMMAND_RULE_PREFIX):
            await self._record(state, RecordKind.MCP_COMMAND_BLOCKED)
        await self._record(state, RecordKind.POLICY_BLOCKED)

    async def _record(self, state: _CallState[PlanT], kind: RecordKind) -> None:
        call, plan, result = state.call, state.plan, state.result
        finished = kind is RecordKind.TOOL_FINISHED
        await self.audit.record(
            AuditRecord(
                kind=kind,
                call_id=call.call_id,
                subject=call.principal.subject,
                tool=call.tool[:MAX_TOOL_NAME_CHARACTERS],
                session_id=call.session_id,
                trace_id=call.trace_id,
                subcommand=plan.name if plan else named_subcommand(call.arguments),
                host=plan.host if plan else "",
                rule_id=result.rule_id if result else "",
                error=_error_name(result, finished=finished),
                exit_code=result.exit_code if result else None,
                run_id=result.run_id if result else "",
                sha256=result.evidence_sha256 if result else "",
                judged_ms=state.judged_ms,
                ran_ms=state.ran_ms,
                duration_ms=self._milliseconds_since(state.started_at) if finished else None,
                text=_typed_text(plan, kind),
            )
        )

    def _activity(self, state: _CallState[PlanT]) -> Activity:
        """Describe the call for viewers, without typed text and without the path of a URL."""
        plan, result = state.plan, state.result
        host = plan.host if plan else ""
        rule_id = result.rule_id if result else ""
        return Activity(
            at=self.clock.wall(),
            subject=state.call.principal.subject,
            session_id=state.call.session_id,
            what=plan.name if plan else "",
            result=_error_name(result, finished=True) or "ok",
            detail=" ".join(filter(None, (host, rule_id))),
            duration_ms=self._milliseconds_since(state.started_at),
        )

    def _milliseconds_since(self, start: float) -> float:
        return round((self.clock.monotonic() - start) * 1000, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRunner:
    """Executes each plan with the backend for its kind. A server has only the backend of its profile."""

    browser: Runner[BrowserCommand] | None = None
    containers: Runner[ContainerJob] | None = None

    async def run(self, call: ToolCall, plan: Plan, report_progress: ReportProgress) -> CommandResult:
        """Raises: all errors of the backend; SandboxUnavailable if this server has no backend for the plan."""
        if isinstance(plan, BrowserCommand):
            if self.browser is not None:
                return await self.browser.run(call, plan, report_progress)
        elif self.containers is not None:
            return await self.containers.run(call, plan, report_progress)
        raise SandboxUnavailable(f"this server has no backend for {plan.name}")


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


def _error_name(result: CommandResult | None, *, finished: bool) -> str:
    """Return the name of the error code; '' without an error. A finished call without a result was cancelled."""
    if result is None:
        return "CANCELLED" if finished else ""
    return result.error.name if result.error else ""


def _failed_result(error: BrowserShellError) -> CommandResult:
    return CommandResult(
        exit_code=error.code.exit_code,
        message=error.public_message,
        error=error.code,
        advice=error.advice,
        rule_id=error.rule_id,
        retry_after_seconds=error.retry_after_seconds if isinstance(error, TryLater) else None,
    )


def _run_id(state: _CallState[PlanT], error: BrowserShellError) -> str:
    """Return the id of a job that ran before this error, so that its evidence can be found; '' if no job ran."""
    job_was_executed = state.ran_ms is not None and isinstance(state.plan, ContainerJob)
    # The container runner raises other errors only if the job did not run or left no evidence.
    has_evidence = isinstance(error, BudgetExceeded | ExecutionTimedOut | HookFailed)
    return state.call.call_id if job_was_executed and has_evidence else ""


def _outcome(call: ToolCall, tool: Tool[Plan] | None, result: CommandResult) -> ToolOutcome:
    uses_protocol_errors = tool is not None and tool.uses_protocol_errors
    # A tool with protocol errors returns data of its own output schema, not session_id, exit_code, stdout and stderr.
    answer = result.data if uses_protocol_errors and isinstance(result.data, dict) else None
    return ToolOutcome(
        session_id=call.session_id,
        exit_code=result.exit_code,
        stdout=_stdout(result),
        stderr=_stderr(result),
        error=result.error,
        rule_id=result.rule_id,
        retry_after_seconds=result.retry_after_seconds,
        attachments=result.attachments,
        answer=answer,
        uses_protocol_errors=uses_protocol_errors,
        run_id=result.run_id,
    )


def _stdout(result: CommandResult) -> str:
    if result.error is not None and result.data is None:
        return ""
    return _valid_unicode(compact_json(result.data)) + "\n"


def _stderr(result: CommandResult) -> str:
    # Raised errors bypass the after-hooks, so their messages are redacted and shortened here.
    message = _valid_unicode(redact_text(result.message))
    if result.error is None:
        return message
    if len(message) > MAX_REASON_CHARACTERS:
        message = f"{message[:MAX_REASON_CHARACTERS]}…[{len(message) - MAX_REASON_CHARACTERS} characters cut]"
    rule = f" (rule {result.rule_id})" if result.rule_id else ""
    return f"{result.error.name}: {message}{rule}\n{result.advice or result.error.advice}"


def _valid_unicode(text: str) -> str:
    """Replace lone surrogates. Pages may contain them, and UTF-8 cannot encode them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
