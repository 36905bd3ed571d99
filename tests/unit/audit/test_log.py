from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import RecordKind
from support.audit_logs import a_record, a_writer, call_ids, checked, entries, raw_lines
from support.fakes import FakeClock


async def test_a_record_is_one_line_linked_to_the_next(path: Path) -> None:
    with JsonLinesAudit(path=path, clock=FakeClock(), policy_digest="d1") as audit:
        receipt = await audit.append(a_record(RecordKind.SANDBOX_EXEC))
    third, fourth = entries(path)[2:4]
    assert third == {
        "prev": third["prev"],
        "seq": 3,
        "kind": "SANDBOX_EXEC",
        "time": "2027-01-15T08:00:00.000+00:00",
        "call_id": "c1",
        "subject": "local",
        "tool": "browser-shell",
        "exit_code": 0,
        "policy_digest": "d1",
    }
    assert (receipt.sequence, receipt.sha256) == (3, fourth["prev"])


async def test_a_log_starts_and_ends_with_a_signed_checkpoint(path: Path) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record())
    kinds = [entry["kind"] for entry in entries(path)]
    assert kinds == ["AUDIT_OPENED", "CHECKPOINT", "MCP_TOOL_CALL", "AUDIT_CLOSED", "CHECKPOINT"]
    assert path.with_suffix(".head").read_bytes() == raw_lines(path)[-1]
    verdict = checked(path)
    assert (verdict.sound, verdict.records, verdict.unsigned_records) == (True, 5, 0)


async def test_the_chain_continues_after_a_restart(path: Path) -> None:
    for number in range(3):
        with a_writer(path) as audit:
            await audit.record(a_record(call_id=f"c{number}"))
    assert call_ids(path) == ["c0", "c1", "c2"]
    assert checked(path).sound


async def test_records_of_concurrent_calls_keep_their_order(path: Path) -> None:
    with a_writer(path, checkpoint_records=7) as audit:
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC, call_id=f"c{number}"))
    assert call_ids(path) == [f"c{number}" for number in range(50)]
    assert checked(path).sound


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Simulate a full disk: the kernel writes a line in part or not at all."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.parametrize("room", [0, 1, 10, 150])
async def test_a_full_disk_refuses_records_until_there_is_room(path: Path, room: int) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record(call_id="before"))
        with file_size_limit(path.stat().st_size + room):
            for _ in range(2):
                with pytest.raises(AuditUnavailable):
                    await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id="refused"))
        await audit.record(a_record(call_id="after"))
    assert call_ids(path) == ["before", "after"]
    resumed = next(entry for entry in entries(path) if entry["kind"] == "AUDIT_RESUMED")
    assert (resumed["refused_records"], resumed["late_records"]) == (2, 0)
    assert checked(path).sound


async def test_the_end_of_a_call_is_written_when_there_is_room_again(path: Path) -> None:
    clock = FakeClock()
    with JsonLinesAudit(path=path, clock=clock) as audit:
        with file_size_limit(path.stat().st_size), pytest.raises(AuditUnavailable):
            await audit.record(a_record(RecordKind.TOOL_FINISHED, call_id="late"))
        clock.advance(3600)
        await audit.checkpoint()
    late = next(entry for entry in entries(path) if entry["kind"] == "TOOL_FINISHED")
    assert (late["call_id"], late["time"]) == ("late", "2027-01-15T08:00:00.000+00:00")


async def test_records_are_signed_without_further_calls(path: Path) -> None:
    with a_writer(path, checkpoint_seconds=0.01) as audit:
        await audit.record(a_record())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(audit.run_checkpoints)
            with anyio.fail_after(5):
                while checked(path).unsigned_records:  # noqa: ASYNC110 - the file has no event
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert checked(path).sound


async def test_checkpoints_are_written_by_count_and_by_time(path: Path) -> None:
    clock = FakeClock()
    with JsonLinesAudit(path=path, clock=clock, checkpoint_records=4, checkpoint_seconds=30) as audit:
        for _ in range(4):
            await audit.record(a_record())
        assert checked(path).checkpoints == 2
        await audit.record(a_record())
        clock.advance(30)
        await audit.record(a_record())
        assert checked(path).checkpoints == 3
        assert path.with_suffix(".head").read_bytes() == raw_lines(path)[-1]
