"""Ends a run: reads back what is on the disk, writes its evidence, and tells the audit log the evidence's hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread
import structlog

from browser_shell.core.errors import AuditUnavailable, EngineUnavailable
from browser_shell.core.ports import AuditLog
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.jobs.evidence import (
    EVIDENCE_NAME,
    LOG_NAME,
    MAX_EVIDENCE_BYTES,
    OUTPUT_NAME,
    RunEnd,
    RunFacts,
    WrittenEvidence,
    compose,
    write_evidence,
)
from browser_shell.jobs.output_files import Collected, OutputFile, collect, hash_file
from browser_shell.jobs.run_store import RunStore
from browser_shell.process.plain_files import read_plain_file

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
        await self._tell(facts, closed.evidence, closed.collected.files)
        return closed

    async def finish(self, facts: RunFacts) -> None:
        """For a run whose evidence is there, and perhaps no record of it. Evidence is never written twice."""
        found = await anyio.to_thread.run_sync(self._look_at_evidence, facts.run_id)
        if found is None:
            log.error("evidence_not_readable", run_id=facts.run_id)
        else:
            await self._tell(facts, found)

    async def _tell(self, facts: RunFacts, evidence: WrittenEvidence, files: Sequence[OutputFile] = ()) -> None:
        """Only a run whose evidence is safely in the log has ended; any other is finished by the next upkeep."""
        try:
            for file in files[:_MAX_FILE_RECORDS]:
                await self._record(facts, f"{OUTPUT_NAME}/{file.path}", file.size, file.sha256)
            await self._record(facts, EVIDENCE_NAME, evidence.size, evidence.sha256, durable=True)
            await anyio.to_thread.run_sync(self.store.end, facts.run_id)
        except (AuditUnavailable, OSError):
            # Until then `evidence verify` finds no record of it and says so.
            log.exception("evidence_not_recorded", run_id=facts.run_id)

    def _write(self, facts: RunFacts, end: RunEnd) -> ClosedRun:
        directory = self.store.root / facts.run_id
        collected = collect(directory / OUTPUT_NAME)
        job_log: OutputFile | None = None
        if (directory / LOG_NAME).exists():
            job_log = hash_file(directory / LOG_NAME)
        evidence = write_evidence(directory, compose(facts, end, collected, job_log))
        return ClosedRun(collected=collected, evidence=evidence)

    def _look_at_evidence(self, run_id: str) -> WrittenEvidence | None:
        content = read_plain_file(self.store.root / run_id / EVIDENCE_NAME, max_bytes=MAX_EVIDENCE_BYTES)
        return WrittenEvidence(sha256=hashlib.sha256(content).hexdigest(), size=len(content)) if content else None

    async def _record(self, facts: RunFacts, path: str, size: int, sha256: str, *, durable: bool = False) -> None:
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
                durable=durable,
            )
        )
