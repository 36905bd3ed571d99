"""`evidence verify` over a real audit log: a run is sound only when the log confirms it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.commands import evidence as evidence_commands
from browser_shell.commands.evidence import LogFacts, read_log
from browser_shell.core.records import AuditRecord, RecordKind
from support.fake_engine import ScriptedEngine
from support.fakes import FakeClock
from support.job_plans import RUN, JobBench, a_job, a_job_call
from support.job_server import verify


@contextmanager
def a_bench(directory: Path) -> Iterator[JobBench]:
    """Open an audit log as a starting server does; close it as a stopping server does."""
    bench = JobBench(directory, ScriptedEngine(files={"a/b.txt": b"b"}))
    path = directory / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock(), policy_digest=bench.document.digest()) as audit:
        yield JobBench(directory, bench.engine, audit=audit)  # type: ignore[arg-type]


def a_record(kind: RecordKind, **members: Any) -> AuditRecord:
    return AuditRecord(kind=kind, call_id=RUN, tool="run_pytest", **{"subject": "ann", "run_id": RUN, **members})


async def prepare(bench: JobBench, *kinds: RecordKind, **members: Any) -> None:
    """Create the run's directory and write these records, without a run."""
    run = await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
    for kind in kinds:
        await bench.audit.record(a_record(kind, **{"image": run.facts.image, **members}))


async def lose_a_run(directory: Path, **facts: Any) -> None:
    """Leave what a server leaves that is killed during a run: run.json, with these changes, and two records."""
    with a_bench(directory) as bench:
        await prepare(bench, RecordKind.MCP_CONTAINER_SPAWN, RecordKind.MCP_CONTAINER_EXEC)
    bench.facts_file.write_text(json.dumps({**json.loads(bench.facts_file.read_bytes()), **facts}))


async def test_a_run_is_sound_while_the_server_lives_and_afterwards(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await bench.run()
        assert verify(tmp_path).returncode == 0
    checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.promise("evidence:any-change-is-found")
async def test_a_directory_without_records_does_not_pass_for_a_run_in_progress(tmp_path: Path) -> None:
    with a_bench(tmp_path):
        made_up = tmp_path / "artifacts" / "deadbeef"
        (made_up / "output").mkdir(parents=True)
        (made_up / "run.json").write_text("{}")
        (made_up / "output" / "fake.png").write_bytes(b"png")
        checked = verify(tmp_path)
    assert checked.returncode == 1
    assert "deadbeef: the audit log has no such run in progress" in checked.stdout


@pytest.mark.parametrize("first", [RecordKind.MCP_CONTAINER_SPAWN, RecordKind.MCP_CONTAINER_EXEC])
async def test_a_run_is_in_progress_from_its_first_record_to_its_last(tmp_path: Path, first: RecordKind) -> None:
    with a_bench(tmp_path) as bench:
        await prepare(bench, first, RecordKind.MCP_CONTAINER_CLEANUP)
        checked = verify(tmp_path)
        assert (checked.returncode, "in progress" in checked.stdout) == (0, True), checked.stdout
        await bench.audit.record(a_record(RecordKind.TOOL_FINISHED, run_id=""))
        assert verify(tmp_path).returncode == 1


@pytest.mark.parametrize("last", [RecordKind.RUN_REMOVED, RecordKind.MCP_FILE_WRITE])
async def test_a_run_with_an_end_record_is_not_in_progress(tmp_path: Path, last: RecordKind) -> None:
    with a_bench(tmp_path) as bench:
        await prepare(bench, RecordKind.MCP_CONTAINER_EXEC)
        assert verify(tmp_path).returncode == 0
        await bench.audit.record(a_record(last, path="evidence.json"))
        assert verify(tmp_path).returncode == 1


async def test_no_run_is_in_progress_after_its_server_stopped_or_another_one_started(tmp_path: Path) -> None:
    stopped, killed = tmp_path / "stopped", tmp_path / "killed"
    stopped.mkdir()
    with a_bench(stopped) as bench:
        await prepare(bench, RecordKind.MCP_CONTAINER_EXEC)
        # A killed server leaves the disk as it is now.
        shutil.copytree(stopped, killed)
    assert verify(stopped).returncode == 1
    assert verify(killed).returncode == 0
    with a_bench(killed):
        assert "has no such run in progress" in verify(killed).stdout


@pytest.mark.promise("evidence:any-change-is-found")
@pytest.mark.parametrize("first", [RecordKind.MCP_CONTAINER_SPAWN, RecordKind.MCP_CONTAINER_EXEC])
async def test_a_recorded_run_without_a_directory_is_missing(tmp_path: Path, first: RecordKind) -> None:
    with a_bench(tmp_path) as bench:
        await bench.audit.record(a_record(first))
        assert verify(tmp_path).returncode == 0, "it is in progress, and may be newer than the list of directories"
    with a_bench(tmp_path) as bench:
        checked = verify(tmp_path)
        assert (checked.returncode, f"run {RUN} is missing" in checked.stdout) == (1, True)
        await bench.audit.record(a_record(RecordKind.RUN_REMOVED))
        assert verify(tmp_path).returncode == 0


def between_disk_and_log(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run `act` after `verify` has read the directories and before it reads the log."""

    def act_and_read(log: Path, key_file: Path | None) -> LogFacts:
        act()
        return read_log(log, key_file)

    monkeypatch.setattr(evidence_commands, "read_log", act_and_read)


async def test_a_run_that_ends_during_verification_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_bench(tmp_path) as bench:
        await bench.run()
        bench.evidence_file.rename(bench.facts_file)
        assert verify(tmp_path).returncode == 1
        between_disk_and_log(monkeypatch, lambda: bench.facts_file.rename(bench.evidence_file))
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


async def test_evidence_without_a_record_belongs_to_a_run_in_progress(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await prepare(bench, RecordKind.MCP_CONTAINER_EXEC)
        bench.evidence_file.write_text("{}")
        assert verify(tmp_path).returncode == 0
        await bench.audit.record(a_record(RecordKind.TOOL_FINISHED))
        assert verify(tmp_path).returncode == 1


async def test_recorded_evidence_cannot_be_replaced_with_a_later_record(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await bench.run()
        bench.evidence_file.write_bytes(bench.evidence_file.read_bytes() + b" ")
        forged = hashlib.sha256(bench.evidence_file.read_bytes()).hexdigest()
        await bench.audit.record(a_record(RecordKind.MCP_FILE_WRITE, path="evidence.json", sha256=forged))
        assert "not the one that the audit log recorded" in verify(tmp_path).stdout


@pytest.mark.parametrize("changed", [False, True])
async def test_recording_evidence_again_does_not_hide_a_change(tmp_path: Path, changed: bool) -> None:
    with a_bench(tmp_path) as bench:
        await bench.run()
        if changed:
            content = bench.evidence_file.read_bytes()
            bench.evidence_file.write_bytes(content.replace(b'"exit_code": 0', b'"exit_code": 1'))
        bench.facts_file.write_text("{}")
        await bench.upkeep().begin()
    assert not bench.facts_file.exists()
    assert (tmp_path / "audit.jsonl").read_text("utf-8").count('"path":"evidence.json"') == 2
    checked = verify(tmp_path, RUN)
    assert checked.returncode == int(changed), checked.stdout
    assert ("not the one that the audit log recorded" in checked.stdout) is changed


async def test_a_run_that_is_removed_during_verification_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_bench(tmp_path) as bench:
        await bench.run()
        (bench.run_directory / "output" / "a" / "b.txt").unlink()
        assert verify(tmp_path).returncode == 1
        await bench.audit.record(a_record(RecordKind.RUN_REMOVED))
        between_disk_and_log(monkeypatch, lambda: bench.store.remove(RUN))
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


async def test_a_run_that_starts_during_verification_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_bench(tmp_path) as bench:
        await bench.run()
        bench.run_directory.rename(tmp_path / "aside")
        assert verify(tmp_path).returncode == 1
        between_disk_and_log(monkeypatch, lambda: (tmp_path / "aside").rename(bench.run_directory))
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


async def test_a_link_does_not_pass_for_a_run(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await bench.run()
        shutil.move(bench.run_directory, tmp_path / "elsewhere")
        bench.run_directory.symlink_to(tmp_path / "elsewhere")
        assert f"run {RUN} is missing" in verify(tmp_path).stdout


async def test_the_evidence_of_a_lost_run_is_sound(tmp_path: Path) -> None:
    await lose_a_run(tmp_path)
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout
    assert "incomplete: server_lost" in checked.stdout


@pytest.mark.promise("evidence:any-change-is-found")
@pytest.mark.parametrize(
    ("name", "label"), [("policy_digest", "policy digest"), ("image", "image"), ("subject", "subject")]
)
async def test_a_changed_run_file_of_a_lost_run_is_detected(tmp_path: Path, name: str, label: str) -> None:
    await lose_a_run(tmp_path, **{name: "0" * 64})
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        checked = verify(tmp_path)
    assert checked.returncode == 1
    assert f"its {label} is not the one in the audit log" in checked.stdout


async def test_a_lost_run_that_never_started_is_compared_with_its_spawn_record(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await prepare(bench, RecordKind.MCP_CONTAINER_SPAWN, subject="bob")
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        assert "its subject is not the one in the audit log" in verify(tmp_path).stdout


async def test_a_subject_that_the_log_withholds_is_no_difference(tmp_path: Path) -> None:
    subject = "https://ann@example"
    with a_bench(tmp_path) as bench:
        await prepare(bench, RecordKind.MCP_CONTAINER_EXEC, subject=subject)
    bench.facts_file.write_text(json.dumps({**json.loads(bench.facts_file.read_bytes()), "subject": subject}))
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        checked = verify(tmp_path)
    assert b"withheld" in (tmp_path / "audit.jsonl").read_bytes()
    assert checked.returncode == 0, checked.stdout
