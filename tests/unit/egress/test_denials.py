"""Denied connections: a page cannot fill the audit log with them, and every denial is counted."""

from __future__ import annotations

import anyio
import pytest

from browser_shell.core.decisions import Denial, Requester
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.egress import denials as module
from browser_shell.egress.denials import BURST_RECORDS, DenialAudit, RecentDenials
from support.fakes import FakeClock, RecordingAudit


def denial_record(number: int = 0, *, session_id: str = "s1", rule_id: str = "address.private") -> AuditRecord:
    return AuditRecord(
        kind=RecordKind.MCP_NETWORK_BLOCKED,
        call_id="",
        subject="ann",
        session_id=session_id,
        tool="egress",
        host=f"h{number}.example:443",
        rule_id=rule_id,
    )


def recorded_denials(audit: RecordingAudit, session_id: str = "s1") -> int:
    """Count the denials in the log, in single records and in summaries."""
    return sum(record.suppressed_records or 1 for record in audit.records if record.session_id == session_id)


@pytest.mark.promise("audit:pages-cannot-fill-it")
async def test_denials_above_the_allowance_are_summarised() -> None:
    audit, clock = RecordingAudit(), FakeClock()
    denial_audit = DenialAudit(audit=audit, clock=clock)
    for number in range(5_000):
        await denial_audit.record(denial_record(number, rule_id="host.local" if number % 2 else "address.private"))
    assert len(audit.records) == BURST_RECORDS
    await denial_audit.summarise()
    assert [(record.rule_id, record.suppressed_records) for record in audit.records[BURST_RECORDS:]] == [
        ("address.private", 2450),
        ("host.local", 2450),
    ]
    assert recorded_denials(audit) == 5_000
    await denial_audit.summarise()
    assert recorded_denials(audit) == 5_000


async def test_log_grows_slowly_under_an_hour_of_denials() -> None:
    audit, clock = RecordingAudit(), FakeClock()
    denial_audit = DenialAudit(audit=audit, clock=clock)
    for _ in range(360):
        for number in range(100):
            await denial_audit.record(denial_record(number))
        clock.advance(10)
        await denial_audit.summarise()
    assert recorded_denials(audit) == 36_000
    assert len(audit.records) < 2_400


async def test_each_session_has_its_own_allowance() -> None:
    audit = RecordingAudit()
    denial_audit = DenialAudit(audit=audit, clock=FakeClock())
    for number in range(1_000):
        await denial_audit.record(denial_record(number))
    await denial_audit.record(denial_record(1, session_id="s2"))
    assert audit.records[-1].session_id == "s2"


async def test_allowed_connections_are_never_summarised() -> None:
    audit = RecordingAudit()
    denial_audit = DenialAudit(audit=audit, clock=FakeClock())
    for _ in range(500):
        await denial_audit.record(AuditRecord(kind=RecordKind.EGRESS_CONNECT, call_id="", subject="ann", tool="egress"))
    assert len(audit.records) == 500


class AuditThatFails(RecordingAudit):
    is_full = False

    async def record(self, record: AuditRecord) -> None:
        if self.is_full:
            raise AuditUnavailable("no space left")
        await super().record(record)


async def test_summary_that_cannot_be_written_is_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SUMMARY_SECONDS", 0.01)
    audit = AuditThatFails()
    denial_audit = DenialAudit(audit=audit, clock=FakeClock())
    for number in range(300):
        await denial_audit.record(denial_record(number))
    audit.is_full = True
    with pytest.raises(AuditUnavailable):
        await denial_audit.summarise()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(denial_audit.run)
        await anyio.sleep(0.05)
        audit.is_full = False
        tasks.cancel_scope.cancel()
    assert recorded_denials(audit) == 300


async def test_denials_during_a_summary_are_in_the_next_one() -> None:
    audit = RecordingAudit()
    denial_audit = DenialAudit(audit=audit, clock=FakeClock())
    for number in range(BURST_RECORDS + 5):
        await denial_audit.record(denial_record(number))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(denial_audit.summarise)
        tasks.start_soon(denial_audit.record, denial_record())
    await denial_audit.summarise()
    assert [record.suppressed_records for record in audit.records[BURST_RECORDS:]] == [5, 1]


ALICE, BOB = Requester(subject="alice", session_id="s1"), Requester(subject="bob", session_id="s1")


def a_denial(requester: Requester = ALICE, at: float = 1.0, host: str = "x.example") -> Denial:
    return Denial(requester=requester, at=at, host=host, port=80, rule_id="r", reason="no")


def test_recent_denials_of_a_session_come_oldest_first() -> None:
    denials = RecentDenials()
    for at in (1.0, 2.0, 3.0):
        denials.add(a_denial(at=at))
    denials.add(a_denial(BOB, at=2.0, host="bobs.example"))
    assert [denial.at for denial in denials.since(ALICE, 2.0)] == [2.0, 3.0]
    assert [denial.host for denial in denials.since(BOB, 0)] == ["bobs.example"]
    assert denials.since(Requester(subject="alice", session_id="s2"), 0) == []


def test_session_does_not_displace_the_denials_of_another() -> None:
    denials = RecentDenials()
    denials.add(a_denial(BOB))
    for number in range(10_000):
        denials.add(a_denial(at=number))
    assert len(denials.since(BOB, 0)) == 1
    recent = denials.since(ALICE, 0)
    assert len(recent) <= 1000
    assert recent[-1].at == 9999


def test_denials_of_old_sessions_are_dropped() -> None:
    denials = RecentDenials()
    for number in range(10_000):
        denials.add(a_denial(Requester(subject="alice", session_id=str(number))))
    remembered = sum(bool(denials.since(Requester(subject="alice", session_id=str(n)), 0)) for n in range(10_000))
    assert 64 <= remembered <= 1000
    assert denials.since(Requester(subject="alice", session_id="9999"), 0)
