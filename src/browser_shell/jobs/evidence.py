"""The evidence of one run: a document with the hash of every file and the audit record of the run's start.

A run is closed when its evidence is written and the hash of its evidence is in the audit log.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio.to_thread
import structlog

from browser_shell.core.containers import ContainerReport
from browser_shell.core.errors import AuditUnavailable, EngineUnavailable
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.ports import AuditLog
from browser_shell.core.records import AuditRecord, Receipt, RecordKind
from browser_shell.jobs.output_files import UNLISTED_REASON, Collected, OutputFile, collect, hash_file
from browser_shell.jobs.run_store import EVIDENCE_NAME, LOG_NAME, OUTPUT_NAME, RunFacts, RunStore, plain
from browser_shell.jobs.test_report import JobReport
from browser_shell.process.files import read_plain_file, replace_file

FORMAT = "browser-shell evidence 1"
MAX_EVIDENCE_BYTES = 16 * 1024 * 1024
"""`evidence verify` reads no more. Paths take at most half of it (`MAX_LISTED_BYTES`)."""
_MAX_FILE_RECORDS = 100
"""Per run. The evidence lists every file, and the audit log holds the hash of the evidence."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended. `end` is a ContainerEnd, an error code, or the reason why the end is unknown."""

    end: str
    complete: bool
    ended: str
    report: ContainerReport | None = None
    tests: JobReport | None = None
    receipt: Receipt | None = None
    """Receipt of the audit record that announced the program's start; None when it never started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRun:
    collected: Collected
    evidence_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCloser:
    """Closes runs of this server, and runs that a killed server left without an end."""

    store: RunStore
    audit: AuditLog

    async def close(self, facts: RunFacts, end: RunEnd) -> ClosedRun:
        """Raises: EngineUnavailable when the evidence cannot be written."""
        try:
            collected, evidence = await anyio.to_thread.run_sync(self._write, facts, end)
        except OSError as cause:
            raise EngineUnavailable(
                f"the evidence of run {facts.run_id} cannot be written: {cause.strerror}"
            ) from cause
        sha256 = await self._record_end(facts, evidence, collected.files)
        return ClosedRun(collected=collected, evidence_sha256=sha256)

    async def record_existing(self, facts: RunFacts) -> None:
        """Record evidence that was written but perhaps not recorded. Evidence is never written twice."""
        path = self.store.root / facts.run_id / EVIDENCE_NAME
        content = await anyio.to_thread.run_sync(lambda: read_plain_file(path, max_bytes=MAX_EVIDENCE_BYTES))
        if content:
            await self._record_end(facts, content)
        else:
            log.error("evidence_not_readable", run_id=facts.run_id)

    async def _record_end(self, facts: RunFacts, evidence: bytes, files: Sequence[OutputFile] = ()) -> str:
        """Record the evidence, end the run, and return the evidence's hash. After a failure upkeep tries again."""
        sha256 = hashlib.sha256(evidence).hexdigest()
        try:
            for file in files[:_MAX_FILE_RECORDS]:
                await self._record(facts, f"{OUTPUT_NAME}/{file.path}", file.size, file.sha256)
            await self._record(facts, EVIDENCE_NAME, len(evidence), sha256, durable=True)
            await anyio.to_thread.run_sync(self.store.end, facts.run_id)
        except (AuditUnavailable, OSError):
            # Until then `evidence verify` reports that the record is missing.
            log.exception("evidence_not_recorded", run_id=facts.run_id)
        return sha256

    def _write(self, facts: RunFacts, end: RunEnd) -> tuple[Collected, bytes]:
        directory = self.store.root / facts.run_id
        collected = collect(directory / OUTPUT_NAME)
        job_log = hash_file(directory / LOG_NAME) if (directory / LOG_NAME).exists() else None
        return collected, write_evidence(directory, compose(facts, end, collected, job_log))

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


def compose(facts: RunFacts, end: RunEnd, collected: Collected, log: OutputFile | None) -> JsonObject:
    """Return the document. Everything under `files` was read back from the disk."""
    report = end.report
    refused: list[JsonValue] = [{"path": entry.path, "reason": entry.reason} for entry in collected.refused]
    if report is not None:
        refused += [{"path": entry.path, "reason": entry.reason.value} for entry in report.refused]
    return {
        "format": FORMAT,
        **facts.as_json(),
        "complete": end.complete,
        "audit": plain(asdict(end.receipt)) if end.receipt is not None else None,
        "ended": end.ended,
        "seconds": plain(asdict(report.timings)) if report is not None else None,
        "outcome": _outcome(end),
        "log": {**plain(asdict(log)), "cut": report.log_cut if report else True} if log is not None else None,
        "files": [plain(asdict(file)) for file in collected.files],
        "files_cut": collected.cut,
        "empty_directories": list(collected.empty_directories),
        "unlisted": {"count": collected.unlisted, "reason": UNLISTED_REASON} if collected.unlisted else None,
        "refused": refused,
        "refused_count": collected.refused_count + (report.refused_count if report else 0),
    }


def write_evidence(run_directory: Path, document: JsonObject) -> bytes:
    """Write atomically and durably. Return the content. Raises: OSError, also when it is too large to be verified."""
    content = encode(document)
    if len(content) > MAX_EVIDENCE_BYTES:
        raise OSError(errno.EFBIG, f"it would have {len(content)} bytes, and verify reads {MAX_EVIDENCE_BYTES}")
    replace_file(run_directory / EVIDENCE_NAME, content)
    return content


def encode(document: JsonObject) -> bytes:
    return json.dumps(document, indent=1, ensure_ascii=True, sort_keys=True).encode("ascii") + b"\n"


def _outcome(end: RunEnd) -> JsonObject:
    report = end.report
    counts = plain(asdict(end.tests)) if end.tests is not None else None
    if counts is not None:
        del counts["failures"], counts["failures_left_out"]
    return {
        "end": end.end,
        "exit_code": report.exit_code if report is not None else None,
        "container_id": report.container_id if report is not None else "",
        "output_complete": report.output_complete if report is not None else False,
        # Untrusted: the job writes its own report.
        "counts_by_the_job_itself": counts,
    }
