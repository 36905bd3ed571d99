"""The backend of `ContainerJob` plans: a fresh container a run, recorded before it starts, with evidence at its end."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from browser_shell.core.calls import ToolCall
from browser_shell.core.containers import ContainerOrder, ContainerReport
from browser_shell.core.errors import (
    AuditUnavailable,
    BrowserShellError,
    EngineUnavailable,
    ErrorCode,
    RateLimited,
    SandboxUnavailable,
)
from browser_shell.core.jobs import JobReport
from browser_shell.core.plans import ContainerJob
from browser_shell.core.ports import Clock, ContainerEngine, ReceiptLog, ReportProgress
from browser_shell.core.records import AuditRecord, Receipt, RecordKind, utc_timestamp
from browser_shell.core.results import CommandResult
from browser_shell.jobs.answer import answer, broken_rule
from browser_shell.jobs.command_line import JobWords, runner_command
from browser_shell.jobs.evidence import LOG_NAME, OUTPUT_NAME, RunEnd, RunFacts
from browser_shell.jobs.output_tail import OutputTail
from browser_shell.jobs.run_closing import ClosedRun, RunCloser
from browser_shell.jobs.run_store import RunStore
from browser_shell.jobs.test_report import read_report
from browser_shell.jobs.workspace import Workspace
from browser_shell.policy.job_sections import SandboxSection

log = structlog.get_logger()

_PROGRESS_SECONDS = 1.0
_CLOSING_SECONDS = 60.0
_REPORT_SECONDS = 20.0
_CANCELLED = "cancelled"
FAILED = "failed"
"""The end of a run that a fault of this server ended."""
_RETRY_SECONDS = 15.0


@dataclass(slots=True, kw_only=True)
class _Run:
    """What is known of a run so far."""

    call: ToolCall
    plan: ContainerJob
    words: JobWords
    facts: RunFacts
    order: ContainerOrder
    output: OutputTail
    container_id: str = ""
    receipt: Receipt | None = None
    report: ContainerReport | None = None
    tests: JobReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSandbox:
    """Runs jobs. Whatever happens to one, its container is gone and its evidence is there when `run` ends."""

    engine: ContainerEngine
    image: str
    """The local id: what the policy names was looked up once."""
    workspace: Workspace
    store: RunStore
    closer: RunCloser
    rules: SandboxSection
    policy_digest: str
    audit: ReceiptLog
    clock: Clock
    readers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    """Reports are read one at a time: what one may cost, many must not cost at once."""

    async def run(self, call: ToolCall, plan: ContainerJob, tell: ReportProgress) -> CommandResult:
        """Raises: ArgumentsInvalid, SandboxViolation, RateLimited, AuditUnavailable; nothing ran then."""
        await self._require_places(call, plan)
        async with self._begun(call, plan) as run:
            try:
                run.report = await self._in_container(run, tell)
            except BrowserShellError as fault:
                # The engine failed, or the start could not be recorded. The directory is there, so its end is told.
                code = ErrorCode.ENGINE_UNAVAILABLE if isinstance(fault, SandboxUnavailable) else fault.code
                closed = await self._close(run, end=code.name)
                return CommandResult(
                    exit_code=code.exit_code,
                    error=code,
                    message=fault.public_message,
                    rule_id=fault.rule_id,
                    run_id=run.facts.run_id,
                    evidence_sha256=closed.evidence.sha256,
                )
            except BaseException as other:
                cancelled = isinstance(other, anyio.get_cancelled_exc_class())
                await self._close_anyhow(run, end=_CANCELLED if cancelled else FAILED)
                raise
            closed = await self._close(run, end=run.report.end.value)
            return _answer(run, run.report, closed)

    async def _require_places(self, call: ToolCall, plan: ContainerJob) -> None:
        try:
            await anyio.to_thread.run_sync(self.workspace.require_places, plan)
        except BrowserShellError as refused:
            await self.audit.record(replace(_record(RecordKind.MCP_COMMAND_BLOCKED, call, ""), rule_id=refused.rule_id))
            raise

    @asynccontextmanager
    async def _begun(self, call: ToolCall, plan: ContainerJob) -> AsyncIterator[_Run]:
        run_id, active = call.call_id, self.store.active
        if len(active) >= self.rules.max_running:
            raise RateLimited(
                f"{len(active)} jobs are running, and no more may at one time",
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
        facts = RunFacts.of(
            run_id=run_id,
            subject=call.principal.subject,
            plan=plan,
            image=self.image,
            limits=limits,
            policy_digest=self.policy_digest,
            began=self.clock.wall(),
        )
        words = runner_command(plan)
        try:
            directory: Path = await anyio.to_thread.run_sync(self.store.begin, facts)
        except OSError as cause:
            raise EngineUnavailable(f"the run's directory cannot be made: {cause.strerror}") from cause
        order = ContainerOrder(
            run_id=run_id,
            image=self.image,
            argv=words.argv,
            environment=words.environment,
            workspace=self.workspace.root,
            output=directory / OUTPUT_NAME,
            log_path=directory / LOG_NAME,
            limits=limits,
        )
        return _Run(call=call, plan=plan, words=words, facts=facts, order=order, output=OutputTail())

    async def _in_container(self, run: _Run, tell: ReportProgress) -> ContainerReport:
        """Raises: SandboxUnavailable, SandboxViolation, AuditUnavailable."""
        limits = run.order.limits
        in_words = (
            f"memory {limits.memory_bytes} cpus {limits.cpus} seconds {limits.timeout_seconds} pids {limits.processes}"
        )
        await self.audit.record(
            replace(
                _record(RecordKind.MCP_CONTAINER_SPAWN, run.call, run.facts.run_id), image=self.image, limits=in_words
            )
        )
        reports: list[ContainerReport] = []
        faults: list[BrowserShellError] = []
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._tell, run, tell)
            try:
                reports.append(
                    await self.engine.run(
                        run.order, on_output=run.output.add, before_start=partial(self._announce, run)
                    )
                )
            except BrowserShellError as fault:
                faults.append(fault)
            beside.cancel_scope.cancel()
        if faults:
            raise faults[0]
        return reports[0]

    async def _announce(self, run: _Run, container_id: str) -> None:
        """The start is on the disk before it happens."""
        run.container_id = container_id
        record = _record(RecordKind.MCP_CONTAINER_EXEC, run.call, run.facts.run_id)
        run.receipt = await self.audit.append(
            replace(record, container_id=container_id, image=self.image, subcommand=shlex.join(run.words.argv))
        )

    async def _tell(self, run: _Run, tell: ReportProgress) -> None:
        began, total = self.clock.monotonic(), float(run.plan.timeout_seconds)
        while True:
            seconds = round(self.clock.monotonic() - began, 1)
            said = run.output.last_line()[:200] if run.container_id else "making a container"
            await tell(seconds, max(total, seconds), said or "running")
            await anyio.sleep(_PROGRESS_SECONDS)

    async def _close(self, run: _Run, *, end: str) -> ClosedRun:
        """Evidence, whoever has stopped waiting for it. Raises: EngineUnavailable when it cannot be written."""
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

    async def _close_anyhow(self, run: _Run, *, end: str) -> None:
        """For a run that something else has ended already, which must be heard of rather than this."""
        try:
            await self._close(run, end=end)
        except Exception:
            log.exception("run_not_closed", run_id=run.facts.run_id)

    async def _read_report(self, run: _Run) -> JobReport | None:
        with anyio.move_on_after(_REPORT_SECONDS):
            return await anyio.to_thread.run_sync(read_report, run.order.output, run.words.report, limiter=self.readers)
        log.warning("report_not_read", run_id=run.facts.run_id, why="others were being read")
        return None

    async def _record_cleanup(self, run: _Run, end: str) -> None:
        report = run.report
        try:
            await self.audit.record(
                replace(
                    _record(RecordKind.MCP_CONTAINER_CLEANUP, run.call, run.facts.run_id),
                    container_id=run.container_id,
                    exit_code=report.exit_code if report else None,
                    error="" if end == "exited" else end.upper(),
                    ran_ms=round((report.timings.ended - report.timings.started) * 1000, 1) if report else None,
                )
            )
        except AuditUnavailable:
            # The container is gone. The log owes this record and writes it when it can.
            log.exception("cleanup_not_recorded", run_id=run.facts.run_id)


def _answer(run: _Run, report: ContainerReport, closed: ClosedRun) -> CommandResult:
    run_id, sha256 = run.facts.run_id, closed.evidence.sha256
    broken = broken_rule(report, run.order.limits, run_id)
    if broken is not None:
        return replace(broken, evidence_sha256=sha256)
    told = answer(
        run_id=run_id,
        plan=run.plan,
        report=report,
        tests=run.tests,
        output=run.output,
        collected=closed.collected,
        evidence=closed.evidence,
    )
    return CommandResult(exit_code=report.exit_code, data=told, run_id=run_id, evidence_sha256=sha256)


def _record(kind: RecordKind, call: ToolCall, run_id: str) -> AuditRecord:
    return AuditRecord(kind=kind, call_id=call.call_id, subject=call.principal.subject, tool=call.tool, run_id=run_id)
