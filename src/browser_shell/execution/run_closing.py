"""Ends a run: reads back what is on the disk, writes its evidence, and tells the audit log the evidence's hash."""

from __future__ import annotations

from dataclasses import dataclass

import anyio.to_thread
import structlog

from browser_shell.core.errors import AuditUnavailable, EngineUnavailable
from browser_shell.core.ports import AuditLog
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.execution.evidence import (
    EVIDENCE_NAME,
    LOG_NAME,
    OUTPUT_NAME,
    RunEnd,
    RunFacts,
    WrittenEvidence,
    compose,
    write_evidence,
)
from browser_shell.execution.output_files import Collected, OutputFile, collect, hash_file
from browser_shell.execution.run_store import RunStore

_MAX_FILE_RECORDS = 100
"""Of one run. The evidence names every file, and the log holds its hash."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRun:
    """What was found and written."""

    collected: Collected
    evidence: WrittenEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCloser:
    """The same for a run that ended well and for one whose server was killed."""

    store: RunStore
    audit: AuditLog

    async def close(self, facts: RunFacts, end: RunEnd) -> ClosedRun:
        """Raises: EngineUnavailable when the evidence cannot be written."""
        try:
            closed = await anyio.to_thread.run_sync(self._write, facts, end)
        except OSError as cause:
            raise EngineUnavailable(
                f"the evidence of run {facts.run_id} cannot be written: {cause.strerror}"
            ) from cause
        try:
            for file in closed.collected.files[:_MAX_FILE_RECORDS]:
                await self._record(facts, f"{OUTPUT_NAME}/{file.path}", file.size, file.sha256)
            await self._record(facts, EVIDENCE_NAME, closed.evidence.size, closed.evidence.sha256)
        except AuditUnavailable:
            # `evidence verify` will find no record of it and say so, unless the log can write what it owes.
            log.exception("evidence_not_recorded", run_id=facts.run_id)
        return closed

    def _write(self, facts: RunFacts, end: RunEnd) -> ClosedRun:
        directory = self.store.root / facts.run_id
        collected = collect(directory / OUTPUT_NAME)
        job_log: OutputFile | None = None
        if (directory / LOG_NAME).exists():
            job_log = hash_file(directory / LOG_NAME)
        evidence = write_evidence(directory, compose(facts, end, collected, job_log))
        self.store.end(facts.run_id)
        return ClosedRun(collected=collected, evidence=evidence)

    async def _record(self, facts: RunFacts, path: str, size: int, sha256: str) -> None:
        await self.audit.record(
            AuditRecord(
                kind=RecordKind.MCP_FILE_WRITE,
                call_id=facts.run_id,
                subject=facts.subject,
                tool=facts.tool,
                run_id=facts.run_id,
                path=path,
                size_bytes=size,
                sha256=sha256,
            )
        )
