"""Runs `ContainerJob` plans: each in a fresh container, recorded before it starts, closed with evidence."""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from browser_shell.core.calls import CommandResult, ContainerJob, JobRunner, ToolCall
from browser_shell.core.containers import ContainerOrder, ContainerReport
from browser_shell.core.errors import (
    ArgumentsInvalid,
    AuditUnavailable,
    BrowserShellError,
    EngineUnavailable,
    ErrorCode,
    RateLimited,
    SandboxUnavailable,
    SandboxViolation,
)
from browser_shell.core.ports import Clock, ContainerEngine, ReportProgress
from browser_shell.core.records import AuditRecord, Receipt, RecordKind, utc_timestamp
from browser_shell.jobs.answer import OutputTail, answer, limit_error
from browser_shell.jobs.command_line import RunnerCommand, runner_command
from browser_shell.jobs.evidence import ClosedRun, RunCloser, RunEnd
from browser_shell.jobs.run_store import LOG_NAME, OUTPUT_NAME, RunFacts, RunStore, plain
from browser_shell.jobs.test_report import JobReport, read_report
from browser_shell.policy.document import SandboxSection
from browser_shell.policy.jobs import path_of
from browser_shell.policy.messages import quoted

log = structlog.get_logger()

_PROGRESS_SECONDS = 1.0
_CLOSING_SECONDS = 60.0
_REPORT_SECONDS = 20.0
_RETRY_SECONDS = 15.0
_CANCELLED = "cancelled"
_FAILED = "failed"
"""The end of a run that an unexpected error of this server ended."""


@dataclass(slots=True, kw_only=True)
class _Run:
    """The state of a run in progress."""

    call: ToolCall
    plan: ContainerJob
    command: RunnerCommand
    facts: RunFacts
    order: ContainerOrder
    output: OutputTail = field(default_factory=OutputTail)
    container_id: str = ""
    receipt: Receipt | None = None
    report: ContainerReport | None = None
    tests: JobReport | None = None

    def record(self, kind: RecordKind) -> AuditRecord:
        return replace(_record(kind, self.call), run_id=self.facts.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSandbox:
    """Runs jobs. When `run` ends, for any reason, the container is gone and the evidence is written."""

    engine: ContainerEngine
    image: str
    """Local image id, resolved once at the start."""
    workspace: Path
    """The directory whose tests are run: a resolved path without links. Jobs see it read-only."""
    store: RunStore
    closer: RunCloser
    rules: SandboxSection
    policy_digest: str
    append_record: Callable[[AuditRecord], Awaitable[Receipt]]
    """Writes an audit record and returns its position in the log. Raises: AuditUnavailable."""
    clock: Clock
    report_limiter: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    """Reports are parsed one at a time, which bounds the memory and time that hostile ones cost."""

    async def run(self, call: ToolCall, plan: ContainerJob, report_progress: ReportProgress) -> CommandResult:
        """Raises: ArgumentsInvalid, SandboxViolation, RateLimited, AuditUnavailable. Nothing ran then."""
        await self._require_paths(call, plan)
        async with self._begin(call, plan) as run:
            try:
                run.report = await self._run_container(run, report_progress)
            except BrowserShellError as fault:
                # The engine failed, or the start could not be recorded.
                code = ErrorCode.ENGINE_UNAVAILABLE if isinstance(fault, SandboxUnavailable) else fault.code
                closed = await self._close(run, end=code.name)
                return CommandResult(
                    exit_code=code.exit_code,
                    error=code,
                    message=fault.public_message,
                    rule_id=fault.rule_id,
                    run_id=run.facts.run_id,
                    evidence_sha256=closed.evidence_sha256,
                )
            except BaseException as error:
                cancelled = isinstance(error, anyio.get_cancelled_exc_class())
                try:
                    await self._close(run, end=_CANCELLED if cancelled else _FAILED)
                except Exception:
                    # Logged only, so that the caller gets the original error.
                    log.exception("run_not_closed", run_id=run.facts.run_id)
                raise
            closed = await self._close(run, end=run.report.end.value)
            return _result(run, run.report, closed)

    async def _require_paths(self, call: ToolCall, plan: ContainerJob) -> None:
        try:
            await anyio.to_thread.run_sync(require_paths, self.workspace, plan)
        except BrowserShellError as refusal:
            await self.append_record(replace(_record(RecordKind.MCP_COMMAND_BLOCKED, call), rule_id=refusal.rule_id))
            raise

    @asynccontextmanager
    async def _begin(self, call: ToolCall, plan: ContainerJob) -> AsyncIterator[_Run]:
        run_id, active = call.call_id, self.store.active
        if len(active) >= self.rules.max_running:
            raise RateLimited(
                f"{len(active)} jobs are running, which is the limit",
                rule_id="sandbox.max_running",
                retry_after_seconds=_RETRY_SECONDS,
            )
        active.add(run_id)
        try:
            yield await self._prepare(call, plan, run_id)
        finally:
            active.discard(run_id)

    async def _prepare(self, call: ToolCall, plan: ContainerJob, run_id: str) -> _Run:
        limits = self.rules.limits(plan.timeout_seconds)
        facts = RunFacts(
            run_id=run_id,
            subject=call.principal.subject,
            tool=plan.name,
            parameters=plain({**asdict(plan), "runner": plan.runner.value}),
            image=self.image,
            limits=plain(asdict(limits)),
            policy_digest=self.policy_digest,
            start_time=utc_timestamp(self.clock.wall()),
        )
        command = runner_command(plan)
        try:
            directory: Path = await anyio.to_thread.run_sync(self.store.begin, facts)
        except OSError as cause:
            raise EngineUnavailable(f"the run's directory cannot be created: {cause.strerror}") from cause
        order = ContainerOrder(
            run_id=run_id,
            image=self.image,
            argv=command.argv,
            environment=command.environment,
            workspace=self.workspace,
            output=directory / OUTPUT_NAME,
            log_path=directory / LOG_NAME,
            limits=limits,
        )
        return _Run(call=call, plan=plan, command=command, facts=facts, order=order)

    async def _run_container(self, run: _Run, report_progress: ReportProgress) -> ContainerReport:
        """Raises: SandboxUnavailable, SandboxViolation, AuditUnavailable."""
        limits = run.order.limits
        summary = (
            f"memory {limits.memory_bytes} cpus {limits.cpus} seconds {limits.timeout_seconds} pids {limits.processes}"
        )
        await self.append_record(replace(run.record(RecordKind.MCP_CONTAINER_SPAWN), image=self.image, limits=summary))
        outcome: ContainerReport | BrowserShellError
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report_progress, run, report_progress)
            try:
                outcome = await self.engine.run(
                    run.order, on_output=run.output.add, before_start=partial(self._record_start, run)
                )
            except BrowserShellError as fault:
                # Raised outside of the task group, which would wrap it in an ExceptionGroup.
                outcome = fault
            tasks.cancel_scope.cancel()
        if isinstance(outcome, BrowserShellError):
            raise outcome
        return outcome

    async def _record_start(self, run: _Run, container_id: str) -> None:
        run.container_id = container_id
        run.receipt = await self.append_record(
            replace(
                run.record(RecordKind.MCP_CONTAINER_EXEC),
                container_id=container_id,
                image=self.image,
                subcommand=shlex.join(run.command.argv),
            )
        )

    async def _report_progress(self, run: _Run, report_progress: ReportProgress) -> None:
        started, total = self.clock.monotonic(), float(run.plan.timeout_seconds)
        while True:
            seconds = round(self.clock.monotonic() - started, 1)
            message = run.output.last_line()[:200] if run.container_id else "making a container"
            await report_progress(seconds, max(total, seconds), message or "running")
            await anyio.sleep(_PROGRESS_SECONDS)

    async def _close(self, run: _Run, *, end: str) -> ClosedRun:
        """Write the evidence, shielded from cancellation. Raises: EngineUnavailable when it cannot be written."""
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            if run.report is not None:
                run.tests = await self._read_report(run)
            await self._record_cleanup(run, end)
            return await self.closer.close(
                run.facts,
                RunEnd(
                    end=end,
                    complete=run.report is not None and run.report.output_complete,
                    ended=utc_timestamp(self.clock.wall()),
                    report=run.report,
                    tests=run.tests,
                    receipt=run.receipt,
                ),
            )
        raise EngineUnavailable(f"run {run.facts.run_id} could not be closed within {_CLOSING_SECONDS:.0f} s")

    async def _read_report(self, run: _Run) -> JobReport | None:
        with anyio.move_on_after(_REPORT_SECONDS):
            return await anyio.to_thread.run_sync(
                read_report, run.order.output, run.command.report, limiter=self.report_limiter
            )
        log.warning("report_not_read", run_id=run.facts.run_id, why="timed out waiting for other reports")
        return None

    async def _record_cleanup(self, run: _Run, end: str) -> None:
        report = run.report
        try:
            await self.append_record(
                replace(
                    run.record(RecordKind.MCP_CONTAINER_CLEANUP),
                    container_id=run.container_id,
                    exit_code=report.exit_code if report else None,
                    error="" if end == "exited" else end.upper(),
                    ran_ms=round((report.timings.ended - report.timings.started) * 1000, 1) if report else None,
                )
            )
        except AuditUnavailable:
            # The container is gone already. The audit log writes the pending record when it can.
            log.exception("cleanup_not_recorded", run_id=run.facts.run_id)


def _result(run: _Run, report: ContainerReport, closed: ClosedRun) -> CommandResult:
    run_id, sha256 = run.facts.run_id, closed.evidence_sha256
    error = limit_error(report, run.order.limits, run_id)
    if error is not None:
        return replace(error, evidence_sha256=sha256)
    data = answer(run_id=run_id, plan=run.plan, report=report, tests=run.tests, output=run.output, closed=closed)
    return CommandResult(exit_code=report.exit_code, data=data, run_id=run_id, evidence_sha256=sha256)


def _record(kind: RecordKind, call: ToolCall) -> AuditRecord:
    return AuditRecord(kind=kind, call_id=call.call_id, subject=call.principal.subject, tool=call.tool)


def require_paths(workspace: Path, plan: ContainerJob) -> None:
    """Check that every path of the plan exists inside the workspace, after links are resolved.

    In its container the job could not follow a link outside anyway. But "no such test" for such a link would reveal
    which files exist outside.

    Raises: ArgumentsInvalid, SandboxViolation.
    """
    project = _require_path(workspace, workspace, plan.project, "project")
    if not project.is_dir():
        raise ArgumentsInvalid(f"project: {quoted(plan.project)} is not a directory", rule_id="workspace.missing")
    node = plan.runner is JobRunner.PLAYWRIGHT_NODE
    for index, test in enumerate(plan.tests):
        _require_path(workspace, project, path_of(test, node=node) or "..", f"tests[{index}]")


def _require_path(workspace: Path, above: Path, path: str, field_name: str) -> Path:
    try:
        resolved = Path(os.path.realpath(above / path))
        if not resolved.is_relative_to(workspace):
            raise SandboxViolation(
                f"{field_name}: {quoted(path)} leads out of the workspace", rule_id="workspace.outside"
            )
        if not resolved.exists():
            raise ArgumentsInvalid(
                f"{field_name}: there is no {quoted(path)} in the workspace", rule_id="workspace.missing"
            )
    except OSError as cause:
        # A directory that this server may not enter, a name that is too long, or a loop of links.
        raise ArgumentsInvalid(
            f"{field_name}: {quoted(path)} cannot be looked up in the workspace: {cause.strerror}",
            rule_id="workspace.missing",
        ) from cause
    return resolved
