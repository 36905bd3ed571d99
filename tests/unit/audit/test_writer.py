"""Rotation, and files that another program changed."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import RecordKind
from support.audit_logs import a_record, a_writer, call_ids, checked


async def test_rotated_files_continue_the_same_chain(path: Path) -> None:
    for start in (0, 40):
        with a_writer(path, rotate_bytes=4000) as audit:
            for number in range(start, start + 40):
                kind = RecordKind.SANDBOX_EXEC if number % 3 else RecordKind.TOOL_FINISHED
                await audit.record(a_record(kind, call_id=f"c{number}"))
    files = [*sorted(path.parent.glob("audit-*.jsonl")), path]
    assert len(files) > 4
    assert [name for file in files for name in call_ids(file)] == [f"c{number}" for number in range(80)]
    verdict = checked(path)
    assert (verdict.sound, verdict.files) == (True, len(files))


async def test_rotation_during_concurrent_calls_loses_no_record(path: Path) -> None:
    with a_writer(path, rotate_bytes=3000) as audit:
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC, call_id=f"c{number}"))
    assert checked(path).sound
    files = [*sorted(path.parent.glob("audit-*.jsonl")), path]
    assert [name for file in files for name in call_ids(file)] == [f"c{number}" for number in range(100)]


async def test_rotation_waits_for_a_running_flush(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(file: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            leave.wait(5)

    with a_writer(path, rotate_bytes=2000) as audit:
        monkeypatch.setattr(os, "fdatasync", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC))
            await anyio.to_thread.run_sync(entered.wait, 5)
            for _ in range(10):
                await audit.record(a_record())
            assert not list(path.parent.glob("audit-*.jsonl"))
            leave.set()
        assert list(path.parent.glob("audit-*.jsonl"))
    assert checked(path).sound


async def test_a_failed_rotation_keeps_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EACCES, "no")

    with a_writer(path, rotate_bytes=2000) as audit, monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        for number in range(20):
            await audit.record(a_record(call_id=f"c{number}"))
    assert len(call_ids(path)) == 20
    assert checked(path).sound


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.parametrize("change", ["removed", "replaced", "cut", "written to"])
async def test_a_log_that_another_program_changed_accepts_no_announcing_records(path: Path, change: str) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        match change:
            case "removed":
                path.unlink()
            case "replaced":
                copy = path.with_name("copy")
                copy.write_bytes(path.read_bytes())
                copy.replace(path)
            case "cut":
                os.truncate(path, 700)
            case _:
                with path.open("ab") as file:
                    file.write(b"more\n")
        with pytest.raises(AuditUnavailable):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
