from __future__ import annotations

import errno
import json
import os
import resource
import stat
import threading
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.errors import AuditUnavailable, ConfigurationInvalid
from browser_shell.core.records import AuditRecord, RecordKind, SecretText
from support.audit_logs import a_log, a_record, call_ids, checked, entries, raw_lines
from support.fakes import FakeClock


def a_writer(path: Path, **options: float) -> JsonLinesAudit:
    return JsonLinesAudit(path=path, clock=FakeClock(), **options)  # type: ignore[arg-type] # whole numbers are floats


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


async def test_a_record_is_one_line_with_number_time_policy_and_link(path: Path) -> None:
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


async def test_a_log_begins_and_ends_with_a_signed_checkpoint(path: Path) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record())
    kinds = [entry["kind"] for entry in entries(path)]
    assert kinds == ["AUDIT_OPENED", "CHECKPOINT", "MCP_TOOL_CALL", "AUDIT_CLOSED", "CHECKPOINT"]
    assert path.with_suffix(".head").read_bytes() == raw_lines(path)[-1]
    verdict = checked(path)
    assert (verdict.sound, verdict.records, verdict.unsigned_records) == (True, 5, 0)


async def test_the_chain_goes_on_after_a_restart(path: Path) -> None:
    for number in range(3):
        with a_writer(path) as audit:
            await audit.record(a_record(call_id=f"c{number}"))
    assert call_ids(path) == ["c0", "c1", "c2"]
    assert checked(path).sound


async def test_records_of_parallel_calls_keep_their_order(path: Path) -> None:
    with a_writer(path, checkpoint_records=7) as audit:
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC, call_id=f"c{number}"))
    assert call_ids(path) == [f"c{number}" for number in range(50)]
    assert checked(path).sound


@pytest.mark.promise("audit:private")
async def test_only_the_owner_can_read_the_files_even_if_one_was_open_before(path: Path) -> None:
    path.touch(mode=0o644)
    with a_writer(path, rotate_bytes=1500) as audit:
        for _ in range(10):
            await audit.record(a_record())
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"audit.key", "audit.head", "audit.jsonl", "audit-000001.jsonl"} <= set(modes)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationInvalid):
        a_writer(tmp_path / "link")
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]


def test_a_pipe_is_not_a_log(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o644)
    holder = os.open(pipe, os.O_RDWR)  # Otherwise opening it to write would wait for a reader.
    try:
        with pytest.raises(ConfigurationInvalid):
            a_writer(pipe)
    finally:
        os.close(holder)
    assert pipe.stat().st_mode & 0o777 == 0o644


def test_a_missing_directory_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid):
        a_writer(tmp_path / "no" / "audit.jsonl")


def test_a_second_writer_is_turned_away_and_the_first_one_goes_on(path: Path) -> None:
    with a_writer(path), pytest.raises(ConfigurationInvalid):
        a_writer(path)
    assert checked(path).sound


def test_a_key_that_others_can_read_stops_the_start(path: Path) -> None:
    with a_writer(path):
        pass
    path.with_suffix(".key").chmod(0o640)
    with pytest.raises(ConfigurationInvalid):
        a_writer(path)


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
@pytest.mark.parametrize("room", [0, 1, 10, 150])
async def test_a_full_disk_refuses_calls_and_the_log_recovers_when_there_is_room(path: Path, room: int) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record(call_id="before"))
        with files_at_most(path.stat().st_size + room):
            for _ in range(2):
                with pytest.raises(AuditUnavailable):
                    await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id="refused"))
        await audit.record(a_record(call_id="after"))
    assert call_ids(path) == ["before", "after"]
    resumed = next(entry for entry in entries(path) if entry["kind"] == "AUDIT_RESUMED")
    assert (resumed["refused_records"], resumed["late_records"]) == (2, 0)
    assert checked(path).sound


async def test_the_end_of_a_call_is_written_late_rather_than_never(path: Path) -> None:
    clock = FakeClock()
    with JsonLinesAudit(path=path, clock=clock) as audit:
        with files_at_most(path.stat().st_size), pytest.raises(AuditUnavailable):
            await audit.record(a_record(RecordKind.TOOL_FINISHED, call_id="late"))
        clock.advance(3600)
        await audit.checkpoint()
    late = next(entry for entry in entries(path) if entry["kind"] == "TOOL_FINISHED")
    assert (late["call_id"], late["time"]) == ("late", "2027-01-15T08:00:00.000+00:00")


async def test_a_log_without_room_for_its_end_opens_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, content: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched, a_writer(path) as audit:
        await audit.record(a_record())
        patched.setattr(os, "pwrite", full)
    assert entries(path)[-1]["kind"] == "MCP_TOOL_CALL"
    with a_writer(path):
        pass
    assert call_ids(path) == ["c1"]
    assert checked(path).sound


@pytest.mark.promise("audit:durable-before-the-act")
async def test_what_is_about_to_happen_is_on_the_disk_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
async def test_a_record_that_asks_for_it_is_on_the_disk_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.fstat(file).st_size))
        await audit.record(replace(a_record(RecordKind.MCP_FILE_WRITE), durable=True))
        assert synced == [path.stat().st_size]
    assert "durable" not in entries(path)[2]


async def test_callers_at_the_same_time_share_a_flush(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", synced.append)
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC))
        assert len(synced) == 2


async def test_callers_at_the_same_time_share_a_flush_also_on_a_quick_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", synced.append)
        for _ in range(20):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        await anyio.sleep(0.05)
        synced.clear()
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC))
        assert len(synced) <= 3


@pytest.mark.promise("audit:durable-before-the-act")
async def test_nobody_who_waits_for_a_flush_that_fails_may_go_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_what_a_failed_flush_may_have_lost_is_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(file: int) -> None:
        # What Linux does: the pages count as written, and what the disk has is what it had.
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


def goes_on_at_once(work: Coroutine[None, None, None]) -> bool:
    """Whether it ends without giving way to other tasks."""
    try:
        work.send(None)
    except StopIteration:
        return True
    work.close()
    return False


async def test_a_disk_that_is_quick_is_waited_for_in_place(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.fstat(file).st_size))
        with anyio.fail_after(20):  # On a busy machine no thread may be as quick as that for a while.
            while not goes_on_at_once(audit.record(a_record(RecordKind.SANDBOX_EXEC))):
                await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        assert synced[-1] == path.stat().st_size


@pytest.mark.promise("audit:durable-before-the-act")
async def test_a_quick_disk_that_breaks_lets_nobody_go_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_quick_disk_that_begins_to_hang_does_not_hold_up_the_server(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works, go_on = True, threading.Event()

    def flush(file: int) -> None:
        if not works:
            go_on.wait(5)

    with a_writer(path) as audit:
        monkeypatch.setattr(os, "fdatasync", flush)
        for _ in range(20):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        works = False
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC))
            began = anyio.current_time()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert anyio.current_time() - began < 2
            go_on.set()
    assert checked(path).sound


async def test_a_caller_that_gives_up_leaves_the_flush_to_the_others(
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


async def test_quiet_times_end_with_a_checkpoint(path: Path) -> None:
    with a_writer(path, checkpoint_seconds=0.01) as audit:
        await audit.record(a_record())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(audit.tend)
            with anyio.fail_after(5):
                while checked(path).unsigned_records:  # noqa: ASYNC110 - another process would see it this way too
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert checked(path).sound


async def test_checkpoints_come_by_count_and_by_time(path: Path) -> None:
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


async def test_a_full_file_is_followed_by_a_new_one_in_the_same_chain(path: Path) -> None:
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


async def test_parallel_calls_rotate_without_losing_a_record(path: Path) -> None:
    with a_writer(path, rotate_bytes=3000) as audit:
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(audit.record, a_record(RecordKind.SANDBOX_EXEC, call_id=f"c{number}"))
    assert checked(path).sound
    files = [*sorted(path.parent.glob("audit-*.jsonl")), path]
    assert [name for file in files for name in call_ids(file)] == [f"c{number}" for number in range(100)]


async def test_a_file_is_not_taken_away_from_a_flush_that_is_under_way(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_a_log_that_cannot_rotate_goes_on_in_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EACCES, "no")

    with a_writer(path, rotate_bytes=2000) as audit, monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        for number in range(20):
            await audit.record(a_record(call_id=f"c{number}"))
    assert len(call_ids(path)) == 20
    assert checked(path).sound


async def test_a_crash_between_two_files_loses_nothing(path: Path) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record(call_id="c1"))
    path.rename(path.with_name("audit-000001.jsonl"))
    with a_writer(path) as audit:
        await audit.record(a_record(call_id="c2"))
    assert call_ids(path) == ["c2"]
    assert checked(path).sound


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.parametrize("deed", ["removed", "replaced", "cut", "written to"])
async def test_a_log_that_was_taken_away_takes_no_more_intents(path: Path, deed: str) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        match deed:
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


@pytest.mark.promise("audit:no-secrets")
async def test_typed_text_is_a_length_and_a_keyed_hash(tmp_path: Path) -> None:
    hashes = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "audit.jsonl"
        with a_writer(path) as audit:
            for _ in range(2):
                await audit.record(
                    AuditRecord(
                        kind=RecordKind.SANDBOX_EXEC,
                        call_id="c1",
                        subject="local",
                        tool="browser-shell",
                        text=SecretText("hunter2"),
                    )
                )
        typed = [entry for entry in entries(path) if "text_hmac" in entry]
        assert [entry["text_length"] for entry in typed] == [7, 7]
        assert typed[0]["text_hmac"] == typed[1]["text_hmac"]
        hashes.append(typed[0]["text_hmac"])
        assert b"hunter2" not in path.read_bytes()
    assert hashes[0] != hashes[1]


@pytest.mark.promise("audit:no-secrets")
@pytest.mark.parametrize("field", ["call_id", "subject", "tool", "session_id", "subcommand", "host", "error", "path"])
@pytest.mark.parametrize(
    "secret",
    [
        "https://example.com/?token=s3cretvalue",
        "/a?b=s3cretvalue",
        "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJzM2NyZXQifQ.s3cretvalue",
        "Bearer s3cretvalue",
        "Cookie: sid=s3cretvalue",
        "https://me:s3cretvalue@example.com",
    ],
)
async def test_a_secret_in_any_field_is_withheld(path: Path, field: str, secret: str) -> None:
    facts = {"call_id": "c1", "subject": "local", "tool": "browser-shell", field: secret}
    with a_writer(path) as audit:
        await audit.record(AuditRecord(kind=RecordKind.MCP_TOOL_CALL, **facts))  # type: ignore[arg-type] # strings
    assert b"s3cretvalue" not in path.read_bytes()
    assert entries(path)[2][field] == f"[withheld: {len(secret)} characters]"


async def test_plain_values_are_kept_and_long_ones_cut(path: Path) -> None:
    plain = AuditRecord(
        kind=RecordKind.MCP_TOOL_CALL,
        call_id="c1",
        subject="ann@example.com; team=a" * 40,
        tool='x\n{"seq":1}',
        host="[2001:db8::1]:443",
        image="sha256:" + "a" * 64,
        trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
    )
    with a_writer(path) as audit:
        await audit.record(plain)
    written = entries(path)[2]
    assert (written["tool"], written["host"], written["image"]) == (plain.tool, plain.host, plain.image)
    assert written["trace_id"] == plain.trace_id
    assert len(raw_lines(path)) == 5


async def test_a_log_from_before_the_chain_is_set_aside(path: Path) -> None:
    path.write_bytes(b'{"seq":7}\n{"seq":8,"ki')
    with a_writer(path) as audit:
        await audit.record(a_record())
    assert path.with_suffix(".unchained").read_bytes().startswith(b'{"seq":7}')
    assert checked(path).sound


async def test_an_unfinished_line_is_dropped_and_its_length_recorded(path: Path) -> None:
    await a_log(path.parent)
    with path.open("ab") as file:
        file.write(b'{"prev":"ab')
    with a_writer(path):
        pass
    opened = [entry for entry in entries(path) if entry["kind"] == "AUDIT_OPENED"]
    assert [entry.get("torn_bytes") for entry in opened] == [None, 11]
    assert json.loads(raw_lines(path)[-1])["kind"] == "CHECKPOINT"


def no_thread(_: object) -> None:
    raise RuntimeError("can't start new thread")


async def test_a_machine_that_ran_out_of_threads_keeps_no_record_from_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_writer(path) as audit:
        monkeypatch.setattr("threading.Thread.start", no_thread)
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        await audit.checkpoint()
    assert checked(path).sound


async def test_who_gives_up_does_not_leave_the_disk_at_work_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file may be rotated away when nobody flushes."""
    entered, go_on, over = threading.Event(), threading.Event(), anyio.Event()
    flush = os.fdatasync

    def slow(file: int) -> None:
        entered.set()
        go_on.wait(5)
        flush(file)

    async def record() -> None:
        try:
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        finally:
            over.set()

    with a_writer(path) as audit:
        monkeypatch.setattr("os.fdatasync", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(record)
            await anyio.to_thread.run_sync(entered.wait, 5)
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.1)
                assert not over.is_set()
                go_on.set()
        assert over.is_set()
    assert checked(path).sound


async def test_the_thread_ends_with_the_log(path: Path) -> None:
    def flushing() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "audit-flush"]

    before = flushing()
    with a_writer(path) as audit:
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        (own,) = set(flushing()) - set(before)
    assert own not in flushing()


async def test_without_a_thread_to_flush_nothing_may_run_and_later_it_may(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as held:
        with monkeypatch.context() as starved:
            starved.setattr("threading.Thread.start", no_thread)
            audit = held.enter_context(a_writer(path))
            with pytest.raises(AuditUnavailable):
                await audit.record(a_record(RecordKind.SANDBOX_EXEC))
            with pytest.raises(AuditUnavailable):
                await audit.checkpoint()
        await audit.record(a_record(RecordKind.SANDBOX_EXEC))
    assert checked(path).sound
