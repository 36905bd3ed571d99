"""Keeps pages from filling the audit log with refused connections: beyond a measure they are counted, not listed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import anyio
import structlog

from browser_shell.core.egress import Requester
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.core.records import AuditRecord, RecordKind

BURST_RECORDS = 100
"""A page with a hundred trackers is still listed whole."""
RECORDS_PER_SECOND = 0.5
SUMMARY_SECONDS = 10.0
_LAST_SUMMARY_SECONDS = 2.0

log = structlog.get_logger()


@dataclass(slots=True)
class _Allowance:
    records: float
    at: float

    def refill(self, now: float) -> None:
        self.records = min(BURST_RECORDS, self.records + (now - self.at) * RECORDS_PER_SECOND)
        self.at = now


class DenialRecords:
    """An audit log for the egress proxy. Every refusal is in it, listed or as part of a number, and none is lost."""

    def __init__(self, *, audit: AuditLog, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self._allowances: dict[Requester, _Allowance] = {}
        self._uncounted: Counter[tuple[Requester, str]] = Counter()
        """Refusals that no record tells of yet, by session and rule."""

    async def record(self, record: AuditRecord) -> None:
        """Raises: AuditUnavailable."""
        if record.kind is RecordKind.MCP_NETWORK_BLOCKED and not self._may_list(record):
            self._uncounted[_requester(record), record.rule_id] += 1
            return
        await self._audit.record(record)

    async def tend(self) -> None:
        """Writes the numbers, for as long as the server runs, and once more at its end."""
        try:
            while True:
                await anyio.sleep(SUMMARY_SECONDS)
                await self._summarise_if_possible()
        finally:
            with anyio.move_on_after(_LAST_SUMMARY_SECONDS, shield=True):
                await self._summarise_if_possible()

    async def summarise(self) -> None:
        """Raises: AuditUnavailable; what could not be written is written next time."""
        for key, count in list(self._uncounted.items()):
            requester, rule_id = key
            await self._audit.record(
                AuditRecord(
                    kind=RecordKind.MCP_NETWORK_BLOCKED,
                    call_id="",
                    subject=requester.subject,
                    session_id=requester.session_id,
                    tool="egress",
                    rule_id=rule_id,
                    suppressed_records=count,
                )
            )
            # More may have come while that was written.
            self._uncounted[key] -= count
            if not self._uncounted[key]:
                del self._uncounted[key]
        self._forget_the_quiet()

    async def _summarise_if_possible(self) -> None:
        try:
            await self.summarise()
        except AuditUnavailable:
            log.warning("denials_not_counted", waiting=self._uncounted.total())

    def _may_list(self, record: AuditRecord) -> bool:
        now = self._clock.monotonic()
        allowance = self._allowances.setdefault(_requester(record), _Allowance(BURST_RECORDS, now))
        allowance.refill(now)
        if allowance.records < 1:
            return False
        allowance.records -= 1
        return True

    def _forget_the_quiet(self) -> None:
        now = self._clock.monotonic()
        for requester, allowance in list(self._allowances.items()):
            allowance.refill(now)
            if allowance.records >= BURST_RECORDS:
                del self._allowances[requester]


def _requester(record: AuditRecord) -> Requester:
    return Requester(subject=record.subject, session_id=record.session_id)
