from __future__ import annotations

import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.errors import AuditUnavailable, ConfigurationInvalid
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.testing.fakes import FakeClock


def a_record(kind: RecordKind = RecordKind.MCP_TOOL_CALL, call_id: str = "c1") -> AuditRecord:
    return AuditRecord(kind=kind, call_id=call_id, subject="local", tool="browser-shell", exit_code=0)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_a_record_is_one_line_with_a_number_and_a_time(tmp_path: Path) -> None:
    with JsonLinesAudit(path=tmp_path / "audit.jsonl", clock=FakeClock()) as audit:
        await audit.record(a_record())
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
    assert lines(tmp_path / "audit.jsonl") == [
        {
            "seq": number,
            "time": "2027-01-15T08:00:00.000+00:00",
            "kind": kind,
            "call_id": "c1",
            "subject": "local",
            "tool": "browser-shell",
            "exit_code": 0,
        }
        for number, kind in [(1, "MCP_TOOL_CALL"), (2, "SANDBOX_EXEC")]
    ]


async def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        with JsonLinesAudit(path=tmp_path / "audit.jsonl", clock=FakeClock()) as audit:
            await audit.record(a_record())
    assert [line["seq"] for line in lines(tmp_path / "audit.jsonl")] == [1, 2]


async def test_a_line_that_a_crash_tore_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"seq":7}\n5\n{"seq":8,"ki')
    with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
        await audit.record(a_record())
    assert json.loads(path.read_bytes().splitlines()[-1])["seq"] == 8


async def test_records_of_parallel_calls_keep_their_order(tmp_path: Path) -> None:
    with JsonLinesAudit(path=tmp_path / "audit.jsonl", clock=FakeClock()) as audit:
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC, call_id=f"c{number}"))
    assert [line["seq"] for line in lines(tmp_path / "audit.jsonl")] == list(range(1, 51))


@pytest.mark.promise("audit:private")
async def test_only_the_owner_can_read_the_log_even_if_it_was_open_before(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch(mode=0o644)
    with JsonLinesAudit(path=path, clock=FakeClock()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationInvalid):
        JsonLinesAudit(path=tmp_path / "link", clock=FakeClock())
    assert not (tmp_path / "elsewhere").exists()


def test_a_device_is_not_a_log() -> None:
    with pytest.raises(ConfigurationInvalid):
        JsonLinesAudit(path=Path(os.devnull), clock=FakeClock())


def test_a_missing_directory_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid):
        JsonLinesAudit(path=tmp_path / "no" / "audit.jsonl", clock=FakeClock())


def test_a_second_writer_is_turned_away(tmp_path: Path) -> None:
    with JsonLinesAudit(path=tmp_path / "audit.jsonl", clock=FakeClock()), pytest.raises(ConfigurationInvalid):
        JsonLinesAudit(path=tmp_path / "audit.jsonl", clock=FakeClock())


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """The kernel then writes a line in part, or not at all, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.promise("audit:no-record-no-run")
async def test_a_full_disk_is_an_error_and_the_log_recovers_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
        await audit.record(a_record())
        with files_at_most(path.stat().st_size + 10):
            for _ in range(2):
                with pytest.raises(AuditUnavailable):
                    await audit.record(a_record())
        await audit.record(a_record())
    assert json.loads(path.read_bytes().splitlines()[-1])["seq"] == 2


async def test_what_is_about_to_run_is_on_the_disk_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    with JsonLinesAudit(path=tmp_path / "audit.jsonl", clock=FakeClock()) as audit:
        for kind in RecordKind:
            await audit.record(a_record(kind))
    assert len(synced) == 1
