"""Rotation, changed files, and flushes: records are on disk before they return, a slow disk blocks no task."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import RecordKind
from support.audit_logs import a_record, a_writer, call_ids, checked, entries


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


@pytest.mark.promise("audit:durable-before-the-act")
async def test_announcing_records_are_on_disk_before_they_return(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.fstat(file).st_size))
        flushed = set()
        for kind in RecordKind:
            await audit.record(a_record(kind))
            if synced:
                assert synced.pop() == path.stat().st_size
                flushed.add(kind.value)
    assert flushed == {
        "RUN_REMOVED",
        "SANDBOX_EXEC",
        "MCP_CONTAINER_SPAWN",
        "MCP_CONTAINER_EXEC",
        "EGRESS_CONNECT",
        "TICKET_ISSUED",
        "VIEWER_CONNECTED",
        "TAKEOVER_BEGUN",
    }


@pytest.mark.promise("audit:durable-before-the-act")
async def test_durable_records_are_on_disk_before_they_return(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.fstat(file).st_size))
        await audit.record(replace(a_record(RecordKind.MCP_FILE_WRITE), durable=True))
        assert synced == [path.stat().st_size]
    assert "durable" not in entries(path)[2]


async def test_concurrent_callers_share_a_flush(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", synced.append)
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC))
        assert len(synced) == 2


@pytest.mark.promise("audit:durable-before-the-act")
async def test_a_failed_flush_fails_for_every_waiting_caller(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    async def call(name: str) -> None:
        try:
            await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id=name))
        except AuditUnavailable:
            refused.append(name)

    def broken(file: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    with a_writer(path) as audit:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", broken)
            async with anyio.create_task_group() as tasks:
                for number in range(3):
                    tasks.start_soon(call, f"c{number}")
        assert sorted(refused) == ["c0", "c1", "c2"]
        await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id="c3"))
    assert call_ids(path) == ["c0", "c1", "c2", "c3"]
    assert checked(path).sound


async def test_data_of_a_failed_flush_is_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(file: int) -> None:
        # As Linux does: after the error the pages count as clean, although the disk has the old data.
        size = os.fstat(file).st_size
        os.pwrite(file, b"\0" * 100, size - 100)
        raise OSError(errno.EIO, "the disk is broken")

    with a_writer(path) as audit:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", forgetful)
            with pytest.raises(AuditUnavailable):
                await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
    assert b"\0" not in path.read_bytes()
    assert checked(path).sound


@pytest.mark.promise("audit:durable-before-the-act")
async def test_a_broken_disk_refuses_records_until_it_recovers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = True

    def flush(file: int) -> None:
        if not works:
            raise OSError(errno.EIO, "the disk is broken")

    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", flush)
        for _ in range(20):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        works = False
        for _ in range(2):
            with pytest.raises(AuditUnavailable):
                await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        works = True
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
    assert checked(path).sound


async def test_a_hanging_disk_does_not_block_the_event_loop(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works, resume = True, threading.Event()

    def flush(file: int) -> None:
        if not works:
            resume.wait(5)

    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", flush)
        for _ in range(20):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        works = False
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC))
            started = anyio.current_time()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert anyio.current_time() - started < 2
            resume.set()
    assert checked(path).sound


async def test_a_cancelled_caller_does_not_cancel_the_flush_of_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(file: int) -> None:
        entered.set()
        leave.wait(5)

    done: list[str] = []

    async def call(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id=name))
            done.append(name)

    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", slow)
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                scopes = [anyio.CancelScope() for _ in range(3)]
                for number, scope in enumerate(scopes):
                    tasks.start_soon(call, f"c{number}", scope)
                await anyio.to_thread.run_sync(entered.wait, 5)
                scopes[0].cancel()
                scopes[1].cancel()
                leave.set()
    assert "c2" in done


def no_thread(_: object) -> None:
    raise RuntimeError("can't start new thread")


async def test_a_running_log_needs_no_new_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_writer(path) as audit:
        monkeypatch.setattr("threading.Thread.start", no_thread)
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        await audit.checkpoint()
    assert checked(path).sound


async def test_a_cancelled_caller_waits_for_its_running_flush(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, resume, finished = threading.Event(), threading.Event(), anyio.Event()
    flush = os.fdatasync

    def slow(file: int) -> None:
        entered.set()
        resume.wait(5)
        flush(file)

    async def record() -> None:
        try:
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        finally:
            finished.set()

    with a_writer(path) as audit:
        monkeypatch.setattr("os.fdatasync", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(record)
            await anyio.to_thread.run_sync(entered.wait, 5)
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.1)
                assert not finished.is_set()
                resume.set()
        assert finished.is_set()
    assert checked(path).sound


async def test_the_thread_ends_with_the_log(path: Path) -> None:
    def fsync_threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "audit-fsync"]

    before = fsync_threads()
    with a_writer(path) as audit:
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        (own,) = set(fsync_threads()) - set(before)
    assert own not in fsync_threads()


async def test_without_a_thread_records_are_refused_until_one_starts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        with monkeypatch.context() as starved:
            starved.setattr("threading.Thread.start", no_thread)
            audit = stack.enter_context(a_writer(path))
            with pytest.raises(AuditUnavailable):
                await audit.record(a_record(RecordKind.SANDBOX_EXEC))
            with pytest.raises(AuditUnavailable):
                await audit.checkpoint()
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
    assert checked(path).sound


async def test_a_task_cancelled_by_asyncio_does_not_end_the_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, resume = threading.Event(), threading.Event()

    def slow(file: int) -> None:
        entered.set()
        resume.wait(5)

    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", slow)
        task = asyncio.create_task(audit.record(a_record(RecordKind.SANDBOX_EXEC)))
        await anyio.to_thread.run_sync(entered.wait, 5)
        task.cancel()  # Not by a cancel scope, against which the flush is shielded.
        await asyncio.wait([task])
        resume.set()
        with anyio.fail_after(5):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
    assert checked(path).sound
