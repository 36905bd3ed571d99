"""What a killed server left is ended, and what is old is removed, with a record of each."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import anyio
import pytest

from browser_shell.core.errors import AuditUnavailable, SandboxUnavailable
from browser_shell.core.ports import ignore_progress
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.jobs import upkeep as job_upkeep
from browser_shell.jobs.evidence import RunFacts
from support.fake_engine import IMAGE, ScriptedEngine
from support.fakes import FullDiskAudit, RecordingAudit
from support.job_plans import RUN, JobBench, a_job, a_job_call


def begin(bench: JobBench, run_id: str = RUN) -> None:
    bench.store.begin(
        RunFacts.of(
            run_id=run_id,
            subject="ann",
            plan=a_job(),
            image=IMAGE,
            limits=bench.document.sandbox.limits(60),
            policy_digest=bench.document.digest(),
            began=1_800_000_000.0,
        )
    )


async def finish(bench: JobBench, run_id: str, *, age_seconds: float, size: int = 4096) -> None:
    bench.engine.files = {"file": b"x" * size}
    await bench.sandbox().run(a_job_call(run_id), a_job(), ignore_progress)
    moment = bench.clock.wall() - age_seconds
    os.utime(bench.store.root / run_id, (moment, moment))


@pytest.mark.promise("jobs:a-killed-server-leaves-evidence")
async def test_a_run_without_an_end_gets_evidence_that_says_so(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(swept=[RUN]))
    begin(bench)
    (bench.run_directory / "job.log").write_bytes(b"half a line")
    await bench.upkeep().begin()
    found = json.loads((bench.run_directory / "evidence.json").read_bytes())
    assert (found["complete"], found["outcome"]["end"], found["subject"]) == (False, "server_lost", "ann")
    assert found["log"]["size"] == 11
    cleanup, written = bench.audit.records
    assert (cleanup.kind, cleanup.run_id, cleanup.error) == (RecordKind.MCP_CONTAINER_CLEANUP, RUN, "SERVER_LOST")
    assert cleanup.container_id == "c0ffee"
    assert (written.kind, written.path, written.run_id) == (RecordKind.MCP_FILE_WRITE, "evidence.json", RUN)
    await bench.upkeep().begin()
    assert len(bench.audit.records) == 2


@pytest.mark.parametrize("beginning", ['{"run_id": 5', "{}", "[]"])
async def test_a_directory_without_even_a_beginning_gets_evidence_too(tmp_path: Path, beginning: str) -> None:
    bench = JobBench(tmp_path)
    bench.run_directory.mkdir()
    (bench.run_directory / "run.json").write_text(beginning)
    await bench.upkeep().begin()
    assert json.loads((bench.run_directory / "evidence.json").read_bytes())["complete"] is False


async def test_a_beginning_that_is_of_another_run_is_not_believed(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    begin(bench)
    facts = json.loads((bench.run_directory / "run.json").read_bytes())
    (bench.run_directory / "run.json").write_text(json.dumps({**facts, "run_id": "../elsewhere"}))
    (tmp_path / "elsewhere").mkdir()
    await bench.upkeep().begin()
    found = json.loads((bench.run_directory / "evidence.json").read_bytes())
    assert (found["run_id"], found["subject"]) == (RUN, "")
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_runs_that_go_on_are_left_alone(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"retention": {"max_age_hours": 1, "max_total_mib": 1}}})
    begin(bench)
    bench.store.active.add(RUN)
    os.utime(bench.run_directory, (0, 0))
    await bench.upkeep().begin()
    assert not (bench.run_directory / "evidence.json").exists()
    with pytest.raises(OSError, match="goes on"):
        bench.store.remove(RUN)


async def test_old_runs_are_removed_and_recorded(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"retention": {"max_age_hours": 1}}})
    await finish(bench, "a" * 24, age_seconds=3601)
    await finish(bench, "b" * 24, age_seconds=3599)
    await bench.upkeep().begin()
    assert [run.run_id for run in bench.store.runs()] == ["b" * 24]
    removed = [record for record in bench.audit.records if record.kind is RecordKind.RUN_REMOVED]
    assert [record.run_id for record in removed] == ["a" * 24]


async def test_the_oldest_runs_go_when_all_are_too_large(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"retention": {"max_total_mib": 1}}})
    for number, letter in enumerate("abc"):
        await finish(bench, letter * 24, age_seconds=100 - number, size=600 * 1024)
    await bench.upkeep().begin()
    assert [run.run_id for run in bench.store.runs()] == ["c" * 24]


@pytest.mark.promise("audit:no-record-no-run")
async def test_what_cannot_be_recorded_is_not_removed(tmp_path: Path) -> None:
    audit = FullDiskAudit(full_at=RecordKind.RUN_REMOVED)
    bench = JobBench(tmp_path, audit=audit, policy={"sandbox": {"retention": {"max_age_hours": 1}}})
    await finish(bench, "a" * 24, age_seconds=4000)
    with pytest.raises(AuditUnavailable):
        await bench.upkeep().begin()
    assert [run.run_id for run in bench.store.runs()] == ["a" * 24]


async def test_a_removal_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    (bench.store.root / f".removing-{RUN}" / "output").mkdir(parents=True)
    await bench.upkeep().begin()
    assert list(bench.store.root.iterdir()) == []


async def test_a_label_that_is_no_run_id_does_not_reach_the_log(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(swept=["../../etc\nx"]))
    await bench.upkeep().begin()
    assert [record.run_id for record in bench.audit.records] == [""]


async def keep_up_until_ended(bench: JobBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_upkeep, "UPKEEP_SECONDS", 0.01)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.upkeep().keep_up)
            while (bench.run_directory / "run.json").exists():  # noqa: ASYNC110  upkeep tells nobody
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()


class SilentEngine(ScriptedEngine):
    """Does not answer when it is asked what was left behind."""

    async def sweep(self, before_remove: object) -> list[str]:
        raise SandboxUnavailable("the container engine does not answer")


@pytest.mark.promise("jobs:every-run-has-evidence")
@pytest.mark.parametrize("engine", [ScriptedEngine(), SilentEngine()])
async def test_a_lost_run_is_ended_while_the_server_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: ScriptedEngine
) -> None:
    bench = JobBench(tmp_path, engine)
    begin(bench)
    begin(bench, "a" * 24)
    bench.store.active.add("a" * 24)
    await keep_up_until_ended(bench, monkeypatch)
    assert json.loads((bench.run_directory / "evidence.json").read_bytes())["outcome"]["end"] == "end_lost"
    assert [entry.name for entry in (bench.store.root / ("a" * 24)).iterdir()] == ["run.json"]
    assert {record.run_id for record in bench.audit.records} == {RUN}


async def test_a_run_that_ends_while_runs_are_listed_keeps_its_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = JobBench(tmp_path)
    begin(bench)
    before_it_ended = bench.store.runs()
    (bench.run_directory / "run.json").unlink()
    (bench.run_directory / "evidence.json").write_bytes(b"its own")
    monkeypatch.setattr(type(bench.store), "runs", lambda _: before_it_ended)
    await bench.upkeep().begin()
    assert (bench.run_directory / "evidence.json").read_bytes() == b"its own"
    assert bench.audit.records == []


class WatchingAudit(RecordingAudit):
    """Sees what is on the disk when evidence is recorded."""

    bench: JobBench

    async def record(self, record: AuditRecord) -> None:
        if record.path == "evidence.json":
            assert record.durable, "run.json goes next, so this must be on the disk"
            assert (self.bench.run_directory / "run.json").exists()
            assert (self.bench.run_directory / "evidence.json").exists()
        await super().record(record)


@pytest.mark.promise("jobs:every-run-has-evidence")
async def test_a_run_has_not_ended_before_its_evidence_is_recorded(tmp_path: Path) -> None:
    audit = WatchingAudit()
    audit.bench = bench = JobBench(tmp_path, audit=audit)
    await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert audit.records[-1].path == "evidence.json"
    assert not (bench.run_directory / "run.json").exists()


@pytest.mark.promise("jobs:every-run-has-evidence")
@pytest.mark.parametrize("at_start", [True, False])
async def test_evidence_that_could_not_be_recorded_is_recorded_later_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_start: bool
) -> None:
    full = FullDiskAudit(full_at=RecordKind.MCP_FILE_WRITE)
    bench = JobBench(tmp_path, audit=full)
    await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    written = (bench.run_directory / "evidence.json").read_bytes()
    assert (bench.run_directory / "run.json").exists()
    await bench.upkeep().begin()
    assert (bench.run_directory / "run.json").exists(), "there is still no room for the record"

    later = JobBench(tmp_path)
    if at_start:
        await later.upkeep().begin()
    else:
        await keep_up_until_ended(later, monkeypatch)
    (record,) = later.audit.records
    assert (record.path, record.run_id, record.subject) == ("evidence.json", RUN, "ann")
    assert record.sha256 == hashlib.sha256(written).hexdigest()
    assert (bench.run_directory / "evidence.json").read_bytes() == written
    assert not (bench.run_directory / "run.json").exists()


@pytest.mark.promise("audit:no-record-no-run")
async def test_a_container_whose_removal_cannot_be_recorded_stays(tmp_path: Path) -> None:
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
