"""One tool call, read top to bottom: nothing runs that was not planned, judged and recorded first."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Generic

import anyio
import structlog

from browser_shell.core.access import Activity
from browser_shell.core.calls import ToolCall
from browser_shell.core.decisions import refusal_type
from browser_shell.core.errors import (
    AuditUnavailable,
    BrowserShellError,
    BudgetExceeded,
    CallRefused,
    ErrorCode,
    ExecutionTimedOut,
    HookFailed,
    TryLater,
    UnknownTool,
)
from browser_shell.core.human_control import refuse_while_human_controls
from browser_shell.core.json_values import compact_json
from browser_shell.core.plans import BrowserCommand, ContainerJob, Plan
from browser_shell.core.ports import (
    ActivityFeed,
    AuditLog,
    CallLease,
    Clock,
    HumanControl,
    IpAddress,
    Limits,
    PlanT,
    Policy,
    Registry,
    ReportProgress,
    Resolver,
    Runner,
    Tool,
    ToolDescription,
    ignore_progress,
)
from browser_shell.core.records import AuditRecord, RecordKind, SecretText
from browser_shell.core.results import CommandResult, ToolOutcome
from browser_shell.hooks.chain import HookChain
from browser_shell.hooks.redact import redact_text
from browser_shell.policy.commands import named_subcommand

LOOKUP_SECONDS = 10
HOOKS_SECONDS = 10
SANDBOX_GRACE_SECONDS = 10
"""The sandbox keeps the deadline of the plan itself; this much later the pipeline stops waiting for it."""
LAST_RECORD_SECONDS = 5
MAX_STDERR_CHARACTERS = 6_000
MAX_TOOL_NAME_CHARACTERS = 64
COMMAND_RULES = "command."
"""Rules that refuse a subcommand, an operand or an option as such, wherever it would lead."""


log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class _Trail(Generic[PlanT]):
    """What is known of a call so far. Every record of the call is written from it."""

    call: ToolCall
    tell: ReportProgress
    started: float
    tool: Tool[PlanT] | None = None
    lease: CallLease | None = None
    plan: PlanT | None = None
    judged_ms: float | None = None
    ran_ms: float | None = None
    result: CommandResult | None = None
    """None until the call has an end, and for ever when it was cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(Generic[PlanT]):
    """Takes one call from its arguments to its outcome."""

    registry: Registry[PlanT]
    limits: Limits
    hooks: HookChain[PlanT]
    policy: Policy[PlanT]
    resolver: Resolver
    audit: AuditLog
    runner: Runner[PlanT]
    human: HumanControl
    activity: ActivityFeed
    clock: Clock

    def tools(self) -> Sequence[ToolDescription]:
        return tuple(tool.describe() for tool in self.registry.all())

    async def handle(self, call: ToolCall, tell: ReportProgress = ignore_progress) -> ToolOutcome:
        """Answer one call.

        Raises: UnknownTool, and CallRefused when the name of the tool is reserved. Anything else becomes an outcome.
        """
        trail: _Trail[PlanT] = _Trail(call=call, tell=tell, started=self.clock.monotonic())
        try:
            trail.result = await self._run(trail)
        except BrowserShellError as error:
            trail.result = replace(_failure(error), run_id=_run_id(trail, error))
            if trail.tool is None and isinstance(error, UnknownTool | CallRefused):
                raise
        except Exception:
            log.exception("call_failed", call_id=call.call_id)
            trail.result = _failure(BrowserShellError("the server failed on this call"))
        finally:
            await self._close(trail)
        return _outcome(call, trail.tool, trail.result)

    async def _run(self, trail: _Trail[PlanT]) -> CommandResult:
        await self._record(trail, RecordKind.MCP_TOOL_CALL)
        try:
            # A name that no tool has is not counted: it costs nothing, and callers could make up any number of them.
            trail.tool = self.registry.get(trail.call.tool)
            trail.lease = await self.limits.admit(trail.call)
            plan = await self._judge(trail, trail.tool)
        except (CallRefused, UnknownTool) as refusal:
            trail.result, trail.judged_ms = _failure(refusal), self._ms_since(trail.started)
            if refusal.rule_id.startswith(COMMAND_RULES):
                await self._record(trail, RecordKind.MCP_COMMAND_BLOCKED)
            await self._record(trail, RecordKind.POLICY_BLOCKED)
            raise
        # Nothing may rewrite the plan below this line: what was judged is what runs.
        trail.judged_ms = self._ms_since(trail.started)
        await self._record(trail, RecordKind.SANDBOX_EXEC)
        began = self.clock.monotonic()
        try:
            most_seconds = plan.timeout_seconds + plan.settling_seconds + SANDBOX_GRACE_SECONDS
            async with trail.lease.running(most_seconds):
                result = await self._execute(trail, plan, most_seconds)
        finally:
            trail.ran_ms = self._ms_since(began)
        return await self._after(trail.call, plan, result)

    async def _judge(self, trail: _Trail[PlanT], tool: Tool[PlanT]) -> PlanT:
        trail.plan = tool.plan(trail.call.arguments)
        trail.plan = await self._before(trail.call, trail.plan)
        decision = self.policy.decide(trail.plan, await self._look_up(trail.plan))
        if not decision.allowed:
            raise refusal_type(decision.rule_id)(decision.reason, rule_id=decision.rule_id)
        refuse_while_human_controls(self.human)
        return trail.plan

    async def _look_up(self, plan: PlanT) -> dict[str, Sequence[IpAddress]]:
        answers: dict[str, Sequence[IpAddress]] = {}
        hosts = self.policy.needs_lookup(plan)
        if not hosts:
            return answers
        # A name that is not answered in time has no addresses, and the policy refuses a name without addresses.
        with anyio.move_on_after(LOOKUP_SECONDS):
            for host in hosts:
                answers[host] = ()
                answers[host] = await self.resolver.resolve(host)
        return answers

    async def _before(self, call: ToolCall, plan: PlanT) -> PlanT:
        try:
            with self._hooks_in_time():
                return await self.hooks.before(call, plan)
        except CallRefused:
            raise
        except Exception as error:
            log.exception("before_hook_failed", call_id=call.call_id)
            raise HookFailed("a hook failed before the command ran; nothing ran", rule_id="hook.before") from error

    async def _execute(self, trail: _Trail[PlanT], plan: PlanT, most_seconds: float) -> CommandResult:
        with anyio.move_on_after(most_seconds):
            return await self.runner.run(trail.call, plan, _without_secrets(trail.tell))
        raise ExecutionTimedOut(f"{plan.name} did not end within {plan.timeout_seconds} s")

    async def _after(self, call: ToolCall, plan: PlanT, result: CommandResult) -> CommandResult:
        try:
            with self._hooks_in_time():
                return await self.hooks.after(call, plan, result)
        except CallRefused:
            raise
        except Exception as error:
            log.exception("after_hook_failed", call_id=call.call_id)
            message = "the command ran, but a hook failed on its result, which is withheld"
            raise HookFailed(message, rule_id="hook.after") from error

    def _hooks_in_time(self) -> AbstractContextManager[object]:
        return nullcontext() if self.hooks.is_synchronous else anyio.fail_after(HOOKS_SECONDS)

    async def _close(self, trail: _Trail[PlanT]) -> None:
        if trail.lease is not None:
            await trail.lease.settle(trail.result)
        # The act is over, so a failure to record its end cannot undo it; the next call will find the log closed.
        with anyio.move_on_after(LAST_RECORD_SECONDS, shield=True) as deadline:
            try:
                await self._record(trail, RecordKind.TOOL_FINISHED)
            except AuditUnavailable:
                log.exception("last_record_failed", call_id=trail.call.call_id)
        if deadline.cancelled_caught:
            log.error("last_record_timed_out", call_id=trail.call.call_id)
        self.activity.add(self._activity(trail))

    def _activity(self, trail: _Trail[PlanT]) -> Activity:
        """What people who watch may know of the call: neither what was typed nor where on a host it went."""
        plan, result = trail.plan, trail.result
        host = plan.host if plan else ""
        rule_id = result.rule_id if result else ""
        return Activity(
            at=self.clock.wall(),
            subject=trail.call.principal.subject,
            session_id=trail.call.session_id,
            what=plan.name if plan else "",
            result=_error_word(result, ended=True) or "ok",
            detail=" ".join(filter(None, (host, rule_id))),
            duration_ms=self._ms_since(trail.started),
        )

    def _ms_since(self, moment: float) -> float:
        return round((self.clock.monotonic() - moment) * 1000, 1)

    async def _record(self, trail: _Trail[PlanT], kind: RecordKind) -> None:
        call, plan, result = trail.call, trail.plan, trail.result
        ended = kind is RecordKind.TOOL_FINISHED
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
                error=_error_word(result, ended=ended),
                exit_code=result.exit_code if result else None,
                run_id=result.run_id if result else "",
                sha256=result.evidence_sha256 if result else "",
                judged_ms=trail.judged_ms,
                ran_ms=trail.ran_ms,
                duration_ms=self._ms_since(trail.started) if ended else None,
                text=_typed_text(plan, kind),
            )
        )


def _without_secrets(tell: ReportProgress) -> ReportProgress:
    """What is told on the way never meets the after-hooks."""

    async def redacted(done: float, total: float, message: str) -> None:
        await tell(done, total, redact_text(message))

    return redacted


def _typed_text(plan: Plan | None, kind: RecordKind) -> SecretText | None:
    """Once for each call, where it is decided whether the text goes into the page."""
    decided = kind in (RecordKind.SANDBOX_EXEC, RecordKind.POLICY_BLOCKED)
    text = plan.typed_text if isinstance(plan, BrowserCommand) and decided else None
    return SecretText(text) if text is not None else None


def _error_word(result: CommandResult | None, *, ended: bool) -> str:
    if result is None:
        return "CANCELLED" if ended else ""
    return result.error.name if result.error else ""


def _failure(error: BrowserShellError) -> CommandResult:
    return CommandResult(
        exit_code=error.code.exit_code,
        message=error.public_message,
        error=error.code,
        rule_id=error.rule_id,
        retry_after_seconds=error.retry_after_seconds if isinstance(error, TryLater) else None,
    )


def _run_id(trail: _Trail[PlanT], error: BrowserShellError) -> str:
    """Of a job that had begun when this ended it or withheld its result: its evidence is there."""
    ended = isinstance(error, BudgetExceeded | ExecutionTimedOut | HookFailed)
    began = trail.ran_ms is not None and isinstance(trail.plan, ContainerJob)
    return trail.call.call_id if began and ended else ""


def _outcome(call: ToolCall, tool: Tool[Plan] | None, result: CommandResult) -> ToolOutcome:
    own_schema = tool is not None and tool.fails_by_protocol
    return ToolOutcome(
        session_id=call.session_id,
        exit_code=result.exit_code,
        stdout=_stdout(result),
        stderr=_stderr(result),
        error=result.error,
        rule_id=result.rule_id,
        retry_after_seconds=result.retry_after_seconds,
        attachments=result.attachments,
        answer=result.data if own_schema and isinstance(result.data, dict) else None,
        fails_by_protocol=own_schema,
        run_id=result.run_id,
    )


def _stdout(result: CommandResult) -> str:
    if result.error is not None and result.data is None:
        return ""
    return _well_formed(compact_json(result.data)) + "\n"


def _stderr(result: CommandResult) -> str:
    # Refusals and faults never met the after-hooks, so their words are cleaned and bounded here.
    message = _well_formed(redact_text(result.message))
    if result.error is not None:
        message = _in_words(result.error, message, result.rule_id)
    return message


def _in_words(error: ErrorCode, reason: str, rule_id: str) -> str:
    rule = f" (rule {rule_id})" if rule_id else ""
    if len(reason) > MAX_STDERR_CHARACTERS:
        reason = f"{reason[:MAX_STDERR_CHARACTERS]}…[{len(reason) - MAX_STDERR_CHARACTERS} characters cut]"
    return f"{error.name}: {reason}{rule}\n{error.advice}"


def _well_formed(text: str) -> str:
    """Pages may hold half a surrogate pair, which no UTF-8 writer accepts."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
