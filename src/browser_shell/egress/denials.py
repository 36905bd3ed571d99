"""Denied connections: the recent ones, for error messages, and their audit records."""

from __future__ import annotations

from collections import Counter, deque

import anyio
import structlog

from browser_shell.core.decisions import Denial, Requester
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.core.token_bucket import TokenBuckets

BURST_RECORDS = 100
"""Enough to list every tracker of a page that has a hundred of them."""
RECORDS_PER_SECOND = 0.5
SUMMARY_SECONDS = 10.0
_LAST_SUMMARY_SECONDS = 2.0
_MAX_RECENT_PER_SESSION = 200
_MAX_RECENT_SESSIONS = 256

log = structlog.get_logger()


class RecentDenials:
    """The latest denials of each session. One session cannot displace those of another."""

    def __init__(self) -> None:
        self._denials: dict[Requester, deque[Denial]] = {}

    def add(self, denial: Denial) -> None:
        denials = self._denials.pop(denial.requester, None) or deque(maxlen=_MAX_RECENT_PER_SESSION)
        denials.append(denial)
        self._denials[denial.requester] = denials
        if len(self._denials) > _MAX_RECENT_SESSIONS:
            oldest = next(iter(self._denials))
            del self._denials[oldest]

    def since(self, requester: Requester, start: float) -> list[Denial]:
        """Return the session's denials at or after `start` (monotonic seconds), oldest first."""
        return [denial for denial in self._denials.get(requester, ()) if denial.at >= start]


class DenialAudit:
    """The audit log for the egress proxy, which a page must not be able to fill with denied connections.

    A denial within the session's allowance is recorded by itself. Further denials are counted, and the counts are
    recorded every SUMMARY_SECONDS. All other records pass unchanged.
    """

    def __init__(self, *, audit: AuditLog, clock: Clock) -> None:
        self._audit = audit
        self._allowances: TokenBuckets[Requester] = TokenBuckets(
            clock=clock, capacity=BURST_RECORDS, tokens_per_second=RECORDS_PER_SECOND
        )
        self._unrecorded: Counter[tuple[Requester, str]] = Counter()
        """Denials that are in no record yet, by session and rule."""

    async def record(self, record: AuditRecord) -> None:
        """Raises: AuditUnavailable."""
        if record.kind is RecordKind.MCP_NETWORK_BLOCKED:
            requester = Requester(subject=record.subject, session_id=record.session_id)
            if self._allowances.take(requester) > 0:
                self._unrecorded[requester, record.rule_id] += 1
                return
        await self._audit.record(record)

    async def run(self) -> None:
        """Record the counts periodically, and once more when cancelled."""
        try:
            while True:
                await anyio.sleep(SUMMARY_SECONDS)
                await self._try_to_summarise()
        finally:
            with anyio.move_on_after(_LAST_SUMMARY_SECONDS, shield=True):
                await self._try_to_summarise()

    async def summarise(self) -> None:
        """Record the counts. Raises: AuditUnavailable; counts not recorded are kept for the next time."""
        for key, count in list(self._unrecorded.items()):
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
            # The count may have grown while the record was written.
            self._unrecorded[key] -= count
            if not self._unrecorded[key]:
                del self._unrecorded[key]

    async def _try_to_summarise(self) -> None:
        try:
            await self.summarise()
        except AuditUnavailable:
            log.warning("denial_summary_failed", unrecorded=self._unrecorded.total())
