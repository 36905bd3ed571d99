"""The backend of `ContainerJob` plans: a fresh container a run, recorded before it starts, with evidence at its end."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

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
from browser_shell.core.ports import Clock, ContainerEngine, ReceiptLog, TellProgress
from browser_shell.core.records import AuditRecord, Receipt, RecordKind
from browser_shell.core.results import CommandResult
from browser_shell.execution.artifacts import read_plain_file
from browser_shell.execution.evidence import LOG_NAME, OUTPUT_NAME, RunEnd, RunFacts, moment
from browser_shell.execution.job_answer import answer, broken_rule
from browser_shell.execution.job_output import OutputTail
from browser_shell.execution.job_reports import MAX_REPORT_BYTES, READERS
from browser_shell.execution.job_words import JobWords, job_words
from browser_shell.execution.run_closing import ClosedRun, RunCloser
from browser_shell.execution.run_store import RunStore
from browser_shell.execution.workspace import Workspace
from browser_shell.policy.job_sections import SandboxSection

log = structlog.get_logger()

_PROGRESS_SECONDS = 1.0
_CLOSING_SECONDS = 60.0
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

    async def run(self, call: ToolCall, plan: ContainerJob, tell: TellProgress) -> CommandResult:
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
            except anyio.get_cancelled_exc_class():
                with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                    await self._close(run, end="cancelled")
                raise
            return await self._answer(run, run.report)

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
        try:
            directory: Path = await anyio.to_thread.run_sync(self.store.begin, facts)
        except OSError as cause:
            raise EngineUnavailable(f"the run's directory cannot be made: {cause.strerror}") from cause
        words = job_words(plan)
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

    async def _in_container(self, run: _Run, tell: TellProgress) -> ContainerReport:
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

    async def _tell(self, run: _Run, tell: TellProgress) -> None:
        began, total = self.clock.monotonic(), float(run.plan.timeout_seconds)
        while True:
            seconds = round(self.clock.monotonic() - began, 1)
            said = run.output.last_line()[:200] if run.container_id else "making a container"
            await tell(seconds, max(total, seconds), said or "running")
            await anyio.sleep(_PROGRESS_SECONDS)

    async def _answer(self, run: _Run, report: ContainerReport) -> CommandResult:
        tests = await anyio.to_thread.run_sync(partial(_read_report, run.order.output, run.words.report))
        closed = await self._close(run, end=report.end.value, tests=tests)
        broken = broken_rule(report, run.order.limits, run.facts.run_id)
        if broken is not None:
            return replace(broken, evidence_sha256=closed.evidence.sha256)
        told = answer(
            run_id=run.facts.run_id,
            plan=run.plan,
            report=report,
            tests=tests,
            output=run.output,
            collected=closed.collected,
            evidence=closed.evidence,
        )
        return CommandResult(
            exit_code=report.exit_code,
            data=told,
            run_id=run.facts.run_id,
            evidence_sha256=closed.evidence.sha256,
        )

    async def _close(self, run: _Run, *, end: str, tests: JobReport | None = None) -> ClosedRun:
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
        return await self.closer.close(
            run.facts,
            RunEnd(
                end=end,
                complete=report is not None and report.output_complete,
                ended=moment(self.clock.wall()),
                report=report,
                tests=tests,
                receipt=run.receipt,
            ),
        )


def _read_report(output: Path, name: str) -> JobReport | None:
    content = read_plain_file(output / name, max_bytes=MAX_REPORT_BYTES)
    return READERS[PurePosixPath(name).suffix](content) if content is not None else None


def _record(kind: RecordKind, call: ToolCall, run_id: str) -> AuditRecord:
    return AuditRecord(kind=kind, call_id=call.call_id, subject=call.principal.subject, tool=call.tool, run_id=run_id)
