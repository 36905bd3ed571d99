"""Upkeep closes the runs of killed servers and removes old runs, and records both."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import anyio
import pytest

from browser_shell.core.errors import AuditUnavailable, SandboxUnavailable
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.jobs import upkeep as job_upkeep
from support.fake_engine import ScriptedEngine
from support.fakes import FullDiskAudit, RecordingAudit
from support.job_plans import RUN, JobBench, run_facts


async def finish(bench: JobBench, run_id: str, *, age_seconds: float, size: int = 4096) -> None:
    bench.engine.files = {"file": b"x" * size}
    await bench.run(run_id=run_id)
    modified = bench.clock.wall() - age_seconds
    os.utime(bench.store.root / run_id, (modified, modified))


@pytest.mark.promise("jobs:a-killed-server-leaves-evidence")
async def test_a_run_without_an_end_gets_incomplete_evidence(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(swept=[RUN]))
    bench.store.begin(run_facts())
    (bench.run_directory / "job.log").write_bytes(b"half a line")
    await bench.upkeep().begin()
    document = bench.evidence
    assert (document["complete"], document["outcome"]["end"], document["subject"]) == (False, "server_lost", "ann")
    assert document["log"]["size"] == 11
    cleanup, written = bench.audit.records
    assert (cleanup.kind, cleanup.run_id, cleanup.error) == (RecordKind.MCP_CONTAINER_CLEANUP, RUN, "SERVER_LOST")
    assert cleanup.container_id == "c0ffee"
    assert (written.kind, written.path, written.run_id) == (RecordKind.MCP_FILE_WRITE, "evidence.json", RUN)
    await bench.upkeep().begin()
    assert len(bench.audit.records) == 2


@pytest.mark.parametrize("content", ['{"run_id": 5', "{}", "[]"])
async def test_a_run_with_a_broken_run_file_gets_evidence_too(tmp_path: Path, content: str) -> None:
    bench = JobBench(tmp_path)
    bench.run_directory.mkdir()
    bench.facts_file.write_text(content)
    await bench.upkeep().begin()
    assert bench.evidence["complete"] is False


async def test_a_run_file_of_another_run_is_ignored(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    bench.store.begin(run_facts())
    facts = json.loads(bench.facts_file.read_bytes())
    bench.facts_file.write_text(json.dumps({**facts, "run_id": "../elsewhere"}))
    (tmp_path / "elsewhere").mkdir()
    await bench.upkeep().begin()
    document = bench.evidence
    assert (document["run_id"], document["subject"]) == (RUN, "")
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_runs_in_progress_are_neither_closed_nor_removed(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"retention": {"max_age_hours": 1, "max_total_mib": 1}}})
    bench.store.begin(run_facts())
    bench.store.active.add(RUN)
    os.utime(bench.run_directory, (0, 0))
    await bench.upkeep().begin()
    assert not bench.evidence_file.exists()
    with pytest.raises(OSError, match="in progress"):
        bench.store.remove(RUN)


async def test_old_runs_are_removed_and_recorded(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"retention": {"max_age_hours": 1}}})
    await finish(bench, "a" * 24, age_seconds=3601)
    await finish(bench, "b" * 24, age_seconds=3599)
    await bench.upkeep().begin()
    assert [run.run_id for run in bench.store.runs()] == ["b" * 24]
    removed = [record for record in bench.audit.records if record.kind is RecordKind.RUN_REMOVED]
    assert [record.run_id for record in removed] == ["a" * 24]


async def test_the_oldest_runs_are_removed_when_all_together_are_too_large(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"retention": {"max_total_mib": 1}}})
    for number, letter in enumerate("abc"):
        await finish(bench, letter * 24, age_seconds=100 - number, size=600 * 1024)
    await bench.upkeep().begin()
    assert [run.run_id for run in bench.store.runs()] == ["c" * 24]


@pytest.mark.promise("audit:no-record-no-run")
async def test_a_run_is_not_removed_when_the_removal_cannot_be_recorded(tmp_path: Path) -> None:
    audit = FullDiskAudit(full_at=RecordKind.RUN_REMOVED)
    bench = JobBench(tmp_path, audit=audit, policy={"sandbox": {"retention": {"max_age_hours": 1}}})
    await finish(bench, "a" * 24, age_seconds=4000)
    with pytest.raises(AuditUnavailable):
        await bench.upkeep().begin()
    assert [run.run_id for run in bench.store.runs()] == ["a" * 24]


async def test_an_interrupted_removal_is_finished(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    (bench.store.root / f".removing-{RUN}" / "output").mkdir(parents=True)
    await bench.upkeep().begin()
    assert list(bench.store.root.iterdir()) == []


async def test_a_label_that_is_no_run_id_is_not_recorded(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(swept=["../../etc\nx"]))
    await bench.upkeep().begin()
    assert [record.run_id for record in bench.audit.records] == [""]


async def keep_up_until_ended(bench: JobBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_upkeep, "UPKEEP_SECONDS", 0.01)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.upkeep().keep_up)
            while bench.facts_file.exists():  # noqa: ASYNC110 - upkeep has no event to wait for
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()


class UnreachableEngine(ScriptedEngine):
    """An engine whose sweep fails."""

    async def sweep(self, before_remove: object) -> list[str]:
        raise SandboxUnavailable("the container engine does not answer")


@pytest.mark.promise("jobs:every-run-has-evidence")
@pytest.mark.parametrize("engine", [ScriptedEngine(), UnreachableEngine()])
async def test_a_lost_run_is_closed_while_the_server_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: ScriptedEngine
) -> None:
    bench = JobBench(tmp_path, engine)
    bench.store.begin(run_facts())
    bench.store.begin(run_facts("a" * 24))
    bench.store.active.add("a" * 24)
    await keep_up_until_ended(bench, monkeypatch)
    assert bench.evidence["outcome"]["end"] == "end_lost"
    assert [entry.name for entry in (bench.store.root / ("a" * 24)).iterdir()] == ["run.json"]
    assert {record.run_id for record in bench.audit.records} == {RUN}


async def test_a_run_that_ends_while_runs_are_listed_keeps_its_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = JobBench(tmp_path)
    bench.store.begin(run_facts())
    listed = bench.store.runs()
    bench.facts_file.unlink()
    bench.evidence_file.write_bytes(b"its own")
    monkeypatch.setattr(type(bench.store), "runs", lambda _: listed)
    await bench.upkeep().begin()
    assert bench.evidence_file.read_bytes() == b"its own"
    assert bench.audit.records == []


class WatchingAudit(RecordingAudit):
    """Checks the files on the disk when evidence is recorded."""

    bench: JobBench

    async def record(self, record: AuditRecord) -> None:
        if record.path == "evidence.json":
            assert record.durable, "run.json is removed next, so this record must be durable"
            assert self.bench.facts_file.exists()
            assert self.bench.evidence_file.exists()
        await super().record(record)


@pytest.mark.promise("jobs:every-run-has-evidence")
async def test_a_run_ends_only_after_its_evidence_is_recorded(tmp_path: Path) -> None:
    audit = WatchingAudit()
    audit.bench = bench = JobBench(tmp_path, audit=audit)
    await bench.run()
    assert audit.records[-1].path == "evidence.json"
    assert not bench.facts_file.exists()


@pytest.mark.promise("jobs:every-run-has-evidence")
@pytest.mark.parametrize("at_start", [True, False])
async def test_evidence_that_could_not_be_recorded_is_recorded_later_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_start: bool
) -> None:
    full = FullDiskAudit(full_at=RecordKind.MCP_FILE_WRITE)
    bench = JobBench(tmp_path, audit=full)
    await bench.run()
    written = bench.evidence_file.read_bytes()
    assert bench.facts_file.exists()
    await bench.upkeep().begin()
    assert bench.facts_file.exists(), "there is still no room for the record"

    later = JobBench(tmp_path)
    if at_start:
        await later.upkeep().begin()
    else:
        await keep_up_until_ended(later, monkeypatch)
    (record,) = later.audit.records
    assert (record.path, record.run_id, record.subject) == ("evidence.json", RUN, "ann")
    assert record.sha256 == hashlib.sha256(written).hexdigest()
    assert bench.evidence_file.read_bytes() == written
    assert not bench.facts_file.exists()


@pytest.mark.promise("audit:no-record-no-run")
async def test_a_container_is_not_removed_when_the_removal_cannot_be_recorded(tmp_path: Path) -> None:
    engine = ScriptedEngine(swept=[RUN])
    bench = JobBench(tmp_path, engine, audit=FullDiskAudit(full_at=RecordKind.MCP_CONTAINER_CLEANUP))
    with pytest.raises(AuditUnavailable):
        await bench.upkeep().begin()
    assert engine.swept == [RUN]
    later = JobBench(tmp_path, engine)
    await later.upkeep().begin()
    assert engine.swept == []
    assert [(record.kind, record.durable) for record in later.audit.records] == [
        (RecordKind.MCP_CONTAINER_CLEANUP, True)
    ]
