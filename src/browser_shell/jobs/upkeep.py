"""What a job server does besides jobs: ends what a killed server left, and removes what is old."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread
import structlog

from browser_shell.core.errors import AuditUnavailable, EngineUnavailable, SandboxUnavailable
from browser_shell.core.ports import AuditLog, Clock, ContainerEngine
from browser_shell.core.records import AuditRecord, RecordKind, utc_timestamp
from browser_shell.jobs.evidence import EVIDENCE_NAME, RunEnd, RunFacts
from browser_shell.jobs.run_closing import RunCloser
from browser_shell.jobs.run_store import FACTS_NAME, RunStore, StoredRun, is_run_id, runs_to_remove
from browser_shell.policy.job_sections import MIB, RetentionSection

UPKEEP_SECONDS = 60.0
SERVER_LOST = "server_lost"
"""The end of a run whose server was killed, as far as anybody knows it."""
END_LOST = "end_lost"
"""The end of a run of this server whose evidence could not be written when it ended."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUpkeep:
    """At the start, and then every minute."""

    engine: ContainerEngine
    store: RunStore
    closer: RunCloser
    retention: RetentionSection
    audit: AuditLog
    clock: Clock

    async def begin(self) -> None:
        """Before the first job; without it there is no start. Raises: SandboxUnavailable, AuditUnavailable."""
        await anyio.to_thread.run_sync(self.store.finish_removals)
        await self._sweep()
        await self._end_lost_runs(SERVER_LOST)
        await self._remove_old_runs()

    async def keep_up(self) -> None:
        """As long as the server lives. A bad minute is followed by the next one."""
        while True:
            await anyio.sleep(UPKEEP_SECONDS)
            # An engine that does not answer keeps no run from its end, and a full disk none from being removed.
            for duty in (self._sweep, partial(self._end_lost_runs, END_LOST), self._remove_old_runs):
                try:
                    await duty()
                except (SandboxUnavailable, EngineUnavailable, AuditUnavailable, OSError) as fault:
                    log.warning("upkeep_failed", why=str(fault))

    async def _sweep(self) -> None:
        await self.engine.sweep(self._announce_removal)

    async def _announce_removal(self, run_id: str, container_id: str) -> None:
        """A server that is killed right after removing a container has said so before."""
        await self._record(
            RecordKind.MCP_CONTAINER_CLEANUP, run_id, error=SERVER_LOST.upper(), container_id=container_id
        )

    async def _end_lost_runs(self, end: str) -> None:
        """Runs without evidence: nobody saw their end, and their evidence says so."""
        for run in await anyio.to_thread.run_sync(self.store.runs):
            if run.run_id in self.store.active:
                continue
            # Runs that went on when they were listed may have ended meanwhile, so this is looked at again.
            recorded = not (run.directory / FACTS_NAME).exists()
            has_evidence = (run.directory / EVIDENCE_NAME).exists()
            if has_evidence and recorded:
                continue
            log.warning("run_without_end", run_id=run.run_id)
            facts = self.store.facts_of(run.run_id)
            if facts is None or facts.run_id != run.run_id:
                facts = _unknown(run)
            if has_evidence:
                await self.closer.finish(facts)
            else:
                await self.closer.close(facts, RunEnd(end=end, complete=False, ended=utc_timestamp(self.clock.wall())))

    async def _remove_old_runs(self) -> None:
        runs = await anyio.to_thread.run_sync(self.store.runs)
        removable = runs_to_remove(
            [run for run in runs if run.run_id not in self.store.active],
            now=self.clock.wall(),
            max_age_seconds=self.retention.max_age_hours * 3600.0,
            max_total_bytes=self.retention.max_total_mib * MIB,
        )
        for run in removable:
            # On the disk before it happens: evidence that is gone must not look like evidence that never was.
            await self._record(RecordKind.RUN_REMOVED, run.run_id, size_bytes=run.size_bytes)
            await anyio.to_thread.run_sync(self.store.remove, run.run_id)

    async def _record(
        self,
        kind: RecordKind,
        run_id: str,
        *,
        error: str = "",
        container_id: str = "",
        size_bytes: int | None = None,
    ) -> None:
        """On the disk before the act."""
        # A label can be anything that somebody wrote on a container.
        known = run_id if is_run_id(run_id) else ""
        await self.audit.record(
            AuditRecord(
                kind=kind,
                call_id=known,
                subject="",
                tool="upkeep",
                run_id=known,
                error=error,
                container_id=container_id,
                size_bytes=size_bytes,
                durable=True,
            )
        )


def _unknown(run: StoredRun) -> RunFacts:
    return RunFacts(
        run_id=run.run_id,
        subject="",
        tool="",
        parameters={},
        image="",
        limits={},
        policy_digest="",
        began=utc_timestamp(run.modified),
    )
