"""Periodic work of a job server: removes abandoned containers, closes lost runs and removes old ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread
import structlog

from browser_shell.core.containers import MIB
from browser_shell.core.errors import AuditUnavailable, EngineUnavailable, SandboxUnavailable
from browser_shell.core.ports import AuditLog, Clock, ContainerEngine
from browser_shell.core.records import AuditRecord, RecordKind, utc_timestamp
from browser_shell.jobs.evidence import RunCloser, RunEnd
from browser_shell.jobs.run_store import EVIDENCE_NAME, FACTS_NAME, RunFacts, RunStore, is_run_id, runs_to_remove
from browser_shell.policy.document import RetentionSection

UPKEEP_SECONDS = 60.0
SERVER_LOST = "server_lost"
"""The end of a run whose server was killed."""
END_LOST = "end_lost"
"""The end of a run of this server whose evidence could not be written when it ended."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUpkeep:
    """Runs once at the start, and then every minute."""

    engine: ContainerEngine
    store: RunStore
    closer: RunCloser
    retention: RetentionSection
    audit: AuditLog
    clock: Clock

    async def begin(self) -> None:
        """Clean up before the first job. Raises: SandboxUnavailable, AuditUnavailable."""
        await anyio.to_thread.run_sync(self.store.finish_removals)
        await self._sweep()
        await self._close_lost_runs(SERVER_LOST)
        await self._remove_old_runs()

    async def keep_up(self) -> None:
        """Repeat until cancelled. A failed task is logged, does not stop the others and is retried a minute later."""
        while True:
            await anyio.sleep(UPKEEP_SECONDS)
            for task in (self._sweep, partial(self._close_lost_runs, END_LOST), self._remove_old_runs):
                try:
                    await task()
                except (SandboxUnavailable, EngineUnavailable, AuditUnavailable, OSError) as fault:
                    log.warning("upkeep_failed", why=str(fault))

    async def _sweep(self) -> None:
        await self.engine.sweep(self._record_container_removal)

    async def _record_container_removal(self, run_id: str, container_id: str) -> None:
        record = _removal_record(RecordKind.MCP_CONTAINER_CLEANUP, run_id)
        await self.audit.record(replace(record, error=SERVER_LOST.upper(), container_id=container_id))

    async def _close_lost_runs(self, end: str) -> None:
        """Write evidence for runs that have none, and record evidence that was not recorded."""
        for run in await anyio.to_thread.run_sync(self.store.runs):
            if run.run_id in self.store.active:
                continue
            # Checked again: the run may have ended since it was listed.
            is_recorded = not (run.directory / FACTS_NAME).exists()
            has_evidence = (run.directory / EVIDENCE_NAME).exists()
            if has_evidence and is_recorded:
                continue
            log.warning("run_without_end", run_id=run.run_id)
            facts = self.store.facts_of(run.run_id)
            if facts is None:
                facts = RunFacts(run_id=run.run_id, start_time=utc_timestamp(run.modified))
            if has_evidence:
                await self.closer.record_existing(facts)
            else:
                ended = utc_timestamp(self.clock.wall())
                await self.closer.close(facts, RunEnd(end=end, complete=False, ended=ended))

    async def _remove_old_runs(self) -> None:
        runs = await anyio.to_thread.run_sync(self.store.runs)
        removable = runs_to_remove(
            [run for run in runs if run.run_id not in self.store.active],
            now=self.clock.wall(),
            max_age_seconds=self.retention.max_age_hours * 3600.0,
            max_total_bytes=self.retention.max_total_mib * MIB,
        )
        for run in removable:
            record = _removal_record(RecordKind.RUN_REMOVED, run.run_id)
            await self.audit.record(replace(record, size_bytes=run.size_bytes))
            await anyio.to_thread.run_sync(self.store.remove, run.run_id)


def _removal_record(kind: RecordKind, run_id: str) -> AuditRecord:
    """Build a record that is durable before the removal: removed evidence must not look like missing evidence."""
    # Any program can put any text into a container's label.
    checked_id = run_id if is_run_id(run_id) else ""
    return AuditRecord(kind=kind, call_id=checked_id, subject="", tool="upkeep", run_id=checked_id, durable=True)
