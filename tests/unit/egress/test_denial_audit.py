"""A page cannot fill the log with refused connections, and no refusal is missing from its numbers."""

from __future__ import annotations

import anyio
import pytest

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.egress import denial_audit as module
from browser_shell.egress.denial_audit import BURST_RECORDS, DenialRecords
from support.fakes import FakeClock, RecordingAudit


def denial(number: int = 0, *, session_id: str = "s1", rule_id: str = "address.private") -> AuditRecord:
    return AuditRecord(
        kind=RecordKind.MCP_NETWORK_BLOCKED,
        call_id="",
        subject="ann",
        session_id=session_id,
        tool="egress",
        host=f"h{number}.example:443",
        rule_id=rule_id,
    )


def told(audit: RecordingAudit, session_id: str = "s1") -> int:
    """How many refusals the log tells of, one by one or as a number."""
    return sum(record.suppressed_records or 1 for record in audit.records if record.session_id == session_id)


@pytest.mark.promise("audit:pages-cannot-fill-it")
async def test_a_flood_is_listed_up_to_a_measure_and_counted_beyond_it() -> None:
    audit, clock = RecordingAudit(), FakeClock()
    records = DenialRecords(audit=audit, clock=clock)
    for number in range(5_000):
        await records.record(denial(number, rule_id="host.local" if number % 2 else "address.private"))
    assert len(audit.records) == BURST_RECORDS
    await records.summarise()
    assert [(record.rule_id, record.suppressed_records) for record in audit.records[BURST_RECORDS:]] == [
        ("address.private", 2450),
        ("host.local", 2450),
    ]
    assert told(audit) == 5_000
    await records.summarise()
    assert told(audit) == 5_000


async def test_a_flood_goes_on_for_an_hour_and_the_log_grows_slowly() -> None:
    audit, clock = RecordingAudit(), FakeClock()
    records = DenialRecords(audit=audit, clock=clock)
    for _ in range(360):
        for number in range(100):
            await records.record(denial(number))
        clock.advance(10)
        await records.summarise()
    assert told(audit) == 36_000
    assert len(audit.records) < 2_400


async def test_one_session_does_not_use_up_what_another_may_list() -> None:
    audit = RecordingAudit()
    records = DenialRecords(audit=audit, clock=FakeClock())
    for number in range(1_000):
        await records.record(denial(number))
    await records.record(denial(1, session_id="s2"))
    assert audit.records[-1].session_id == "s2"


async def test_connections_that_were_made_are_always_listed() -> None:
    audit = RecordingAudit()
    records = DenialRecords(audit=audit, clock=FakeClock())
    for _ in range(500):
        await records.record(AuditRecord(kind=RecordKind.EGRESS_CONNECT, call_id="", subject="ann", tool="egress"))
    assert len(audit.records) == 500


class DiskThatFills(RecordingAudit):
    full = False

    async def record(self, record: AuditRecord) -> None:
        if self.full:
            raise AuditUnavailable("no space left")
        await super().record(record)


async def test_numbers_that_could_not_be_written_are_written_later_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SUMMARY_SECONDS", 0.01)
    audit = DiskThatFills()
    records = DenialRecords(audit=audit, clock=FakeClock())
    for number in range(300):
        await records.record(denial(number))
    audit.full = True
    with pytest.raises(AuditUnavailable):
        await records.summarise()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(records.tend)
        await anyio.sleep(0.05)
        audit.full = False
        tasks.cancel_scope.cancel()
    assert told(audit) == 300


async def test_refusals_that_come_while_a_number_is_written_are_in_the_next() -> None:
    audit = RecordingAudit()
    records = DenialRecords(audit=audit, clock=FakeClock())
    for number in range(BURST_RECORDS + 5):
        await records.record(denial(number))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(records.summarise)
        tasks.start_soon(records.record, denial())
    await records.summarise()
    assert [record.suppressed_records for record in audit.records[BURST_RECORDS:]] == [5, 1]


async def test_sessions_that_were_quiet_are_forgotten() -> None:
    clock = FakeClock()
    records = DenialRecords(audit=RecordingAudit(), clock=clock)
    for number in range(50):
        await records.record(denial(session_id=f"s{number}"))
    clock.advance(1_000)
    await records.summarise()
    assert records._allowances == {}
