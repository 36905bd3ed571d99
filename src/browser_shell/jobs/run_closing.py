"""Closes a run: hashes its files, writes its evidence and records the evidence's hash in the audit log."""

from __future__ import annotations

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
from browser_shell.process.files import read_plain_file

_MAX_FILE_RECORDS = 100
"""Per run. The evidence lists every file, and the audit log holds the hash of the evidence."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRun:
    """The files of a run and its evidence."""

    collected: Collected
    evidence: WrittenEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCloser:
    """Closes runs of this server, and runs that a killed server left without an end."""

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
        await self._record_end(facts, closed.evidence, closed.collected.files)
        return closed

    async def record_existing(self, facts: RunFacts) -> None:
        """Record evidence that was written but perhaps not recorded. Evidence is never written twice."""
        path = self.store.root / facts.run_id / EVIDENCE_NAME
        content = await anyio.to_thread.run_sync(lambda: read_plain_file(path, max_bytes=MAX_EVIDENCE_BYTES))
        if content:
            await self._record_end(facts, WrittenEvidence.of(content))
        else:
            log.error("evidence_not_readable", run_id=facts.run_id)

    async def _record_end(self, facts: RunFacts, evidence: WrittenEvidence, files: Sequence[OutputFile] = ()) -> None:
        """Record the evidence, then end the run. After a failure the next upkeep tries again."""
        try:
            for file in files[:_MAX_FILE_RECORDS]:
                await self._record(facts, f"{OUTPUT_NAME}/{file.path}", file.size, file.sha256)
            await self._record(facts, EVIDENCE_NAME, evidence.size, evidence.sha256, durable=True)
            await anyio.to_thread.run_sync(self.store.end, facts.run_id)
        except (AuditUnavailable, OSError):
            # Until then `evidence verify` reports that the record is missing.
            log.exception("evidence_not_recorded", run_id=facts.run_id)

    def _write(self, facts: RunFacts, end: RunEnd) -> ClosedRun:
        directory = self.store.root / facts.run_id
        collected = collect(directory / OUTPUT_NAME)
        job_log = hash_file(directory / LOG_NAME) if (directory / LOG_NAME).exists() else None
        evidence = write_evidence(directory, compose(facts, end, collected, job_log))
        return ClosedRun(collected=collected, evidence=evidence)

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
