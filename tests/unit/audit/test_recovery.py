"""Crashes and cuts: a crashed log opens again with all acknowledged records; a changed log does not open."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from browser_shell.core.records import RecordKind
from support.audit_logs import a_log, a_record, a_writer, call_ids, checked, entries, raw_lines

KILLS = 30
WRITER = """
import sys, anyio
from pathlib import Path
from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.records import AuditRecord, RecordKind
from support.fakes import FakeClock

async def write(audit, name, number):
    kind = RecordKind.SANDBOX_EXEC if number % 2 else RecordKind.TOOL_FINISHED
    await audit.record(AuditRecord(kind=kind, call_id=f"{name}-{number}", subject="local", tool="t"))
    # One write call, so that a killed process leaves complete lines.
    sys.stdout.write(f"{name}-{number}\\n")
    sys.stdout.flush()

async def main(path, name):
    with JsonLinesAudit(path=Path(path), clock=FakeClock(), checkpoint_records=9, rotate_bytes=6000) as audit:
        for start in range(0, 1_000_000, 4):
            async with anyio.create_task_group() as tasks:
                for number in range(start, start + 4):
                    tasks.start_soon(write, audit, name, number)

anyio.run(main, sys.argv[1], sys.argv[2])
"""


def acknowledged_before_kill(path: Path, name: str, delays: random.Random) -> list[str]:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline() for _ in range(delays.randrange(60))]
        writer.send_signal(signal.SIGKILL)
        acknowledged += writer.stdout.readlines()
    return [line.decode().strip() for line in acknowledged if line.endswith(b"\n")]


@pytest.mark.promise("audit:crash-loses-nothing")
def test_repeated_kills_lose_no_acknowledged_record(tmp_path: Path) -> None:
    path, delays = tmp_path / "audit.jsonl", random.Random(5)  # noqa: S311 - not a key
    acknowledged: list[str] = []
    for kill in range(KILLS):
        acknowledged += acknowledged_before_kill(path, f"w{kill}", delays)
        verdict = checked(path)
        assert verdict.sound, (kill, verdict.problems)
    with a_writer(path):
        pass
    assert checked(path).sound
    written = {name for file in [*tmp_path.glob("audit-*.jsonl"), path] for name in call_ids(file)}
    assert len(acknowledged) > KILLS
    assert set(acknowledged) <= written


@pytest.mark.promise("audit:crash-loses-nothing")
async def test_a_log_cut_after_its_last_checkpoint_opens_again(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with a_writer(source / "audit.jsonl") as audit:
        for number in range(3):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id=f"c{number}"))
        crashed = Path(shutil.copytree(source, tmp_path / "crashed"))
    path = crashed / "audit.jsonl"
    whole, head = path.read_bytes(), (crashed / "audit.head").read_bytes()
    signed = whole.index(head) + len(head)
    for size in range(signed, len(whole) + 1):
        path.write_bytes(whole[:size])
        (crashed / "audit.head").write_bytes(head)
        whole_lines = whole[:size].count(b"\n")
        with a_writer(path) as audit:
            await audit.record(a_record(call_id="next"))
        lines = raw_lines(path)
        assert b"".join(lines[:whole_lines]) == whole[: whole[:size].rfind(b"\n") + 1]
        assert json.loads(lines[whole_lines])["seq"] == whole_lines + 1
        assert checked(path).sound, f"cut at {size}"


@pytest.mark.promise("audit:crash-loses-nothing")
def test_a_log_opens_after_a_crash_in_its_first_start(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with a_writer(path):
        start = b"".join(raw_lines(path)[:2])
    for size in range(len(start) + 1):
        path.write_bytes(start[:size])
        path.with_suffix(".head").unlink()
        with a_writer(path):
            pass
        assert checked(path).sound


async def test_a_log_opens_after_a_crash_before_the_head_was_written(tmp_path: Path) -> None:
    path, head = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    with a_writer(path, checkpoint_records=2) as audit:
        older = head.read_bytes()
        for number in range(5):
            await audit.record(a_record(call_id=f"c{number}"))
    head.write_bytes(older)
    with a_writer(path):
        pass
    assert checked(path).sound
    assert len(call_ids(path)) == 5


async def test_a_foreign_line_after_the_head_prevents_the_start(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with a_writer(path):
        pass
    with path.open("ab") as file:
        file.write(b"put here\n")
    before = path.read_bytes()
    with pytest.raises(Exception, match="does not follow"):
        a_writer(path)
    assert path.read_bytes() == before


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount; test_log.py covers it with a file size limit")
def test_a_full_tmpfs_refuses_records_until_there_is_room(tmp_path: Path) -> None:
    script = """
import os, subprocess, sys, anyio
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import RecordKind
from support.audit_logs import a_record, a_writer, call_ids, checked

async def main(disk):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)], check=True)
    path = disk / "audit.jsonl"
    with a_writer(path) as audit:
        with open(disk / "ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(b"x" * 512)
            except OSError:
                pass
        refused = 0
        for number in range(100):
            try:
                await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id="early"))
            except AuditUnavailable:
                refused += 1
        assert refused > 10, refused
        verdict = checked(path)
        assert verdict.sound and not verdict.unfinished_bytes, verdict
        (disk / "ballast").unlink()
        await audit.record(a_record(RecordKind.SANDBOX_EXEC, call_id="late"))
    assert checked(path).sound, checked(path).problems
    assert call_ids(path)[-1] == "late"

anyio.run(main, Path(sys.argv[1]))
"""
    tests = Path(__file__).parents[2]
    command = ["unshare", "--mount", sys.executable, "-c", script, str(tmp_path), str(tests)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=30, check=False)
    if "unshare failed" in done.stderr or "permission denied" in done.stderr:
        pytest.skip("mounting is not permitted; test_log.py covers it with a file size limit")
    assert done.returncode == 0, done.stderr


async def test_a_log_without_a_closing_record_opens_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_crash_during_rotation_loses_no_record(path: Path) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record(call_id="c1"))
    path.rename(path.with_name("audit-000001.jsonl"))
    with a_writer(path) as audit:
        await audit.record(a_record(call_id="c2"))
    assert call_ids(path) == ["c2"]
    assert checked(path).sound


async def test_an_unchained_log_is_set_aside(path: Path) -> None:
    path.write_bytes(b'{"seq":7}\n{"seq":8,"ki')
    with a_writer(path) as audit:
        await audit.record(a_record())
    assert path.with_suffix(".unchained").read_bytes().startswith(b'{"seq":7}')
    assert checked(path).sound


async def test_an_incomplete_line_is_dropped_and_its_length_recorded(path: Path) -> None:
    await a_log(path.parent)
    with path.open("ab") as file:
        file.write(b'{"prev":"ab')
    with a_writer(path):
        pass
    opened = [entry for entry in entries(path) if entry["kind"] == "AUDIT_OPENED"]
    assert [entry.get("torn_bytes") for entry in opened] == [None, 11]
    assert json.loads(raw_lines(path)[-1])["kind"] == "CHECKPOINT"
