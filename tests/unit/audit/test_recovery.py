"""A crash at any byte: the log opens again, and nobody was told of a record that is not there."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.records import RecordKind
from support.audit_logs import a_record, call_ids, checked, raw_lines
from support.fakes import FakeClock

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
    # One write, as a client gets its answer: what is told is on the disk, or the promise is broken.
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


def acknowledged_before_kill(path: Path, name: str, moments: random.Random) -> list[str]:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline() for _ in range(moments.randrange(60))]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.readlines()
    return [line.decode().strip() for line in told if line.endswith(b"\n")]


@pytest.mark.promise("audit:crash-loses-nothing")
def test_kill_9_again_and_again_loses_no_record_that_was_acknowledged(tmp_path: Path) -> None:
    path, moments = tmp_path / "audit.jsonl", random.Random(5)  # noqa: S311 - moments to kill at, not keys
    told: list[str] = []
    for kill in range(KILLS):
        told += acknowledged_before_kill(path, f"w{kill}", moments)
        verdict = checked(path)
        assert verdict.sound, (kill, verdict.problems)
    with JsonLinesAudit(path=path, clock=FakeClock()):
        pass
    assert checked(path).sound
    written = {name for file in [*tmp_path.glob("audit-*.jsonl"), path] for name in call_ids(file)}
    assert len(told) > KILLS
    assert set(told) <= written


@pytest.mark.promise("audit:crash-loses-nothing")
async def test_a_log_cut_at_any_byte_after_its_last_checkpoint_opens_again(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with JsonLinesAudit(path=source / "audit.jsonl", clock=FakeClock()) as audit:
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
        with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
            await audit.record(a_record(call_id="next"))
        lines = raw_lines(path)
        assert b"".join(lines[:whole_lines]) == whole[: whole[:size].rfind(b"\n") + 1]
        assert json.loads(lines[whole_lines])["seq"] == whole_lines + 1
        assert checked(path).sound, f"cut at {size}"


@pytest.mark.promise("audit:crash-loses-nothing")
def test_a_crash_in_the_very_first_start_leaves_a_log_that_opens(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock()):
        start = b"".join(raw_lines(path)[:2])
    for size in range(len(start) + 1):
        path.write_bytes(start[:size])
        path.with_suffix(".head").unlink()
        with JsonLinesAudit(path=path, clock=FakeClock()):
            pass
        assert checked(path).sound


async def test_a_crash_before_the_head_was_written_leaves_a_log_that_opens(tmp_path: Path) -> None:
    path, head = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    with JsonLinesAudit(path=path, clock=FakeClock(), checkpoint_records=2) as audit:
        older = head.read_bytes()
        for number in range(5):
            await audit.record(a_record(call_id=f"c{number}"))
    head.write_bytes(older)
    with JsonLinesAudit(path=path, clock=FakeClock()):
        pass
    assert checked(path).sound
    assert len(call_ids(path)) == 5


async def test_a_foreign_line_after_the_head_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock()):
        pass
    with path.open("ab") as file:
        file.write(b"put here\n")
    before = path.read_bytes()
    with pytest.raises(Exception, match="does not follow"):
        JsonLinesAudit(path=path, clock=FakeClock())
    assert path.read_bytes() == before


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount; test_log.py makes a disk full by a size limit")
def test_a_disk_that_is_really_full_refuses_and_recovers(tmp_path: Path) -> None:
    script = """
import os, subprocess, sys, anyio
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.errors import AuditUnavailable
from support.fakes import FakeClock
from browser_shell.core.records import RecordKind
from support.audit_logs import a_record, call_ids, checked

async def main(disk):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)], check=True)
    path = disk / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
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
        pytest.skip("a container without the right to mount; test_log.py makes a disk full by a size limit")
    assert done.returncode == 0, done.stderr
