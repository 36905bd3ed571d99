"""What happens around a container, also when something goes wrong in the middle."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from browser_shell.core.containers import ContainerEnd, ContainerOrder
from browser_shell.core.errors import (
    ArgumentsInvalid,
    AuditUnavailable,
    EngineUnavailable,
    ErrorCode,
    RateLimited,
    SandboxViolation,
)
from browser_shell.core.jobs import JobReport
from browser_shell.core.plans import JobRunner
from browser_shell.core.ports import ignore_progress
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.jobs import test_report as job_reports
from support.fake_engine import HangingEngine, LostEngine, ScriptedEngine
from support.fakes import FullDiskAudit, RecordingAudit
from support.job_plans import RUN, JobBench, a_job, a_job_call

WELL = b'<testsuite><testcase name="a"/></testsuite>'
RAN = ["MCP_CONTAINER_SPAWN", "MCP_CONTAINER_EXEC", "MCP_CONTAINER_CLEANUP", "MCP_FILE_WRITE", "MCP_FILE_WRITE"]


def evidence(bench: JobBench) -> Any:
    return json.loads((bench.run_directory / "evidence.json").read_bytes())


async def test_a_run_is_announced_before_it_starts_and_closed_with_evidence(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}))
    result = await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert bench.audit.kinds == RAN
    assert isinstance(result.data, dict)
    assert (result.data["passed"], result.data["exit_code"], result.data["run_id"]) == (True, 0, RUN)
    written = (bench.run_directory / "evidence.json").read_bytes()
    assert bench.audit.records[-1].sha256 == result.evidence_sha256 == hashlib.sha256(written).hexdigest()
    found = evidence(bench)
    assert found["complete"] is True
    assert found["audit"] == {"sequence": 2, "sha256": "0" * 64}
    assert [file["path"] for file in found["files"]] == ["report/junit.xml"]
    assert sorted(entry.name for entry in bench.run_directory.iterdir()) == ["evidence.json", "job.log", "output"]
    assert bench.store.active == set()


@pytest.mark.promise("jobs:a-report-cannot-forge-success")
async def test_a_forged_report_does_not_turn_failure_into_success(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}, exit_code=1))
    result = await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert isinstance(result.data, dict)
    assert (result.data["passed"], result.data["exit_code"], result.exit_code) == (False, 1, 1)


async def test_a_report_of_failures_makes_a_zero_no_success(tmp_path: Path) -> None:
    bad = b'<testsuite><testcase name="a"><failure message="no"/></testcase></testsuite>'
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": bad}))
    result = await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert isinstance(result.data, dict)
    assert result.data["passed"] is False


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (ContainerEnd.TIMED_OUT, ErrorCode.TIMEOUT),
        (ContainerEnd.OUT_OF_MEMORY, ErrorCode.SANDBOX_VIOLATION),
        (ContainerEnd.OUTPUT_FULL, ErrorCode.SANDBOX_VIOLATION),
    ],
)
async def test_a_run_that_was_ended_is_an_error_with_evidence(
    tmp_path: Path, end: ContainerEnd, code: ErrorCode
) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(end=end, exit_code=137, files={"half.txt": b"half"}))
    result = await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert (result.error, result.run_id) == (code, RUN)
    assert evidence(bench)["outcome"]["end"] == end.value
    assert [file["path"] for file in evidence(bench)["files"]] == ["half.txt"]


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.parametrize("full_at", [RecordKind.MCP_CONTAINER_SPAWN, RecordKind.MCP_CONTAINER_EXEC])
async def test_nothing_starts_when_the_start_cannot_be_recorded(tmp_path: Path, full_at: RecordKind) -> None:
    bench = JobBench(tmp_path, audit=FullDiskAudit(full_at=full_at))
    result = await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert result.error is ErrorCode.AUDIT_UNAVAILABLE
    assert bench.engine.started == []
    assert evidence(bench)["complete"] is False


async def test_an_engine_that_goes_away_is_told_and_leaves_evidence(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, LostEngine())
    result = await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert (result.error, result.run_id) == (ErrorCode.ENGINE_UNAVAILABLE, RUN)
    assert (evidence(bench)["complete"], evidence(bench)["outcome"]["exit_code"]) == (False, None)
    assert bench.audit.records[2].error == "ENGINE_UNAVAILABLE"


@pytest.mark.promise("jobs:cancelling-kills")
async def test_a_cancelled_job_is_killed_and_its_evidence_says_so(tmp_path: Path) -> None:
    engine = HangingEngine()
    bench = JobBench(tmp_path, engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.sandbox().run, a_job_call(), a_job(), ignore_progress)
        with anyio.fail_after(5):
            await engine.begun.wait()
        assert bench.store.active == {RUN}
        tasks.cancel_scope.cancel()
    assert engine.killed
    assert evidence(bench)["outcome"]["end"] == "cancelled"
    assert "MCP_CONTAINER_CLEANUP" in bench.audit.kinds
    assert bench.store.active == set()


async def test_more_jobs_than_may_run_wait_their_turn(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"max_running": 1}})
    bench.store.active.add("another")
    with pytest.raises(RateLimited) as refused:
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert refused.value.retry_after_seconds
    assert bench.engine.orders == []


async def test_progress_is_told_until_the_end(tmp_path: Path) -> None:
    engine = HangingEngine()
    bench = JobBench(tmp_path, engine)
    told: list[tuple[float, float, str]] = []
    second = anyio.Event()

    async def tell(done: float, total: float, message: str) -> None:
        told.append((done, total, message))
        if len(told) > 1:
            second.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.sandbox().run, a_job_call(), a_job(), tell)
        with anyio.fail_after(5):
            await second.wait()
        tasks.cancel_scope.cancel()
    assert told[0][:2] == (0.0, 60.0)
    assert all(message for _, _, message in told)


@pytest.mark.promise("jobs:paths-stay-inside")
async def test_a_link_that_leads_out_of_the_workspace_is_a_violation(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (bench.workspace / "out").symlink_to(tmp_path / "elsewhere")
    (bench.workspace / "p").mkdir()
    (bench.workspace / "p" / "up").symlink_to("..")
    (bench.workspace / "p" / "passwd.py").symlink_to("/etc/passwd")
    for job in (a_job(project="out"), a_job(project="p", tests=("passwd.py",))):
        with pytest.raises(SandboxViolation) as refused:
            await bench.sandbox().run(a_job_call(), job, ignore_progress)
        assert refused.value.rule_id == "workspace.outside"
    assert bench.audit.kinds == ["MCP_COMMAND_BLOCKED"] * 2
    assert bench.engine.orders == []
    await bench.sandbox().run(a_job_call(), a_job(project="p", tests=("up/p",)), ignore_progress)


@pytest.mark.parametrize("job", [{"project": "none"}, {"project": "file"}, {"tests": ("none.py::a",)}])
async def test_a_place_that_is_not_there_is_a_bad_argument(tmp_path: Path, job: dict[str, Any]) -> None:
    bench = JobBench(tmp_path)
    (bench.workspace / "file").touch()
    with pytest.raises(ArgumentsInvalid):
        await bench.sandbox().run(a_job_call(), a_job(**job), ignore_progress)


async def test_a_place_that_cannot_be_looked_up_is_a_bad_argument(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    with pytest.raises(ArgumentsInvalid, match=r"^project: .*File name too long") as refused:
        await bench.sandbox().run(a_job_call(), a_job(project="a" * 300), ignore_progress)
    assert refused.value.rule_id == "workspace.missing"
    assert bench.audit.kinds == ["MCP_COMMAND_BLOCKED"]


async def test_a_directory_that_the_server_may_not_enter_is_a_bad_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = JobBench(tmp_path)
    real_stat = Path.stat

    def closed(path: Path, **options: bool) -> os.stat_result:
        # Nothing is closed to root, as whom these tests may run.
        if path.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_stat(path, **options)

    monkeypatch.setattr(Path, "stat", closed)
    with pytest.raises(ArgumentsInvalid, match=r"^tests\[0\]: .*Permission denied"):
        await bench.sandbox().run(a_job_call(), a_job(tests=("closed",)), ignore_progress)


async def test_a_refusal_that_cannot_be_recorded_says_so(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, audit=FullDiskAudit(full_at=RecordKind.MCP_COMMAND_BLOCKED))
    with pytest.raises(AuditUnavailable):
        await bench.sandbox().run(a_job_call(), a_job(project="none"), ignore_progress)


async def test_the_order_is_ours_whoever_asked(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    await bench.sandbox().run(a_job_call(), a_job(runner=JobRunner.PLAYWRIGHT_NODE, timeout_seconds=7), ignore_progress)
    (order,) = bench.engine.orders
    assert order.argv[:2] == ("/usr/bin/env", "--chdir=/work")
    assert (order.workspace, order.limits.timeout_seconds) == (bench.workspace, 7)
    assert order.output.parent == order.log_path.parent == bench.run_directory


async def test_a_run_whose_place_cannot_be_made_does_not_start(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    bench.run_directory.mkdir()
    with pytest.raises(EngineUnavailable):
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert bench.engine.orders == []
    assert bench.store.active == set()


async def test_evidence_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    sandbox = bench.sandbox()

    class Obstructing(ScriptedEngine):
        async def work(self, order: ContainerOrder) -> None:
            (bench.run_directory / "evidence.json" / "in the way").mkdir(parents=True)

    bench.engine = Obstructing()
    with pytest.raises(EngineUnavailable):
        await replace(sandbox, engine=bench.engine).run(a_job_call(), a_job(), ignore_progress)


class Breaking(ScriptedEngine):
    """An engine with a fault that nobody thought of."""

    async def work(self, order: ContainerOrder) -> None:
        raise ZeroDivisionError


@pytest.mark.promise("jobs:every-run-has-evidence")
async def test_a_fault_of_our_own_leaves_evidence_too(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, Breaking())
    with pytest.raises(ExceptionGroup):
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert (evidence(bench)["complete"], evidence(bench)["outcome"]["end"]) == (False, "failed")
    assert bench.audit.kinds[2:] == ["MCP_CONTAINER_CLEANUP", "MCP_FILE_WRITE"]
    assert bench.audit.records[2].error == "FAILED"
    assert bench.store.active == set()


@pytest.mark.promise("jobs:hostile-reports")
async def test_a_report_that_breaks_its_reader_costs_no_evidence(tmp_path: Path) -> None:
    hostile = b'<?xml version="1.0" encoding="rot13"?><testsuite/>'
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": hostile}))
    result = await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
    assert isinstance(result.data, dict)
    assert result.data["counts"] is None
    assert evidence(bench)["complete"] is True
    assert bench.audit.kinds == RAN


@contextmanager
def slow_reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event, list[int]]]:
    """Reports are read until somebody lets go."""
    reading, go_on, together = threading.Event(), threading.Event(), [0, 0]

    def read(content: bytes) -> JobReport | None:
        together[0] += 1
        together[1] = max(together)
        reading.set()
        go_on.wait(10)
        together[0] -= 1
        return job_reports.read_junit(content)

    monkeypatch.setitem(job_reports.READERS, ".xml", read)
    yield reading, go_on, together
    go_on.set()


@pytest.mark.promise("jobs:every-run-has-evidence")
async def test_cancelling_while_the_report_is_read_does_not_cost_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}))
    with slow_reader(monkeypatch) as (reading, go_on, _), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.sandbox().run, a_job_call(), a_job(), ignore_progress)
            await anyio.to_thread.run_sync(reading.wait, 10)
            scope.cancel()
            go_on.set()
    assert scope.cancelled_caught
    assert evidence(bench)["outcome"]["end"] == "exited"
    assert evidence(bench)["outcome"]["counts_by_the_job_itself"]["passed"] == 1
    assert bench.audit.kinds == RAN


class CancellingAudit(RecordingAudit):
    """Somebody gives up the moment that the end is being recorded."""

    scope: anyio.CancelScope

    async def record(self, record: AuditRecord) -> None:
        if record.kind is RecordKind.MCP_CONTAINER_CLEANUP:
            self.scope.cancel()
        await super().record(record)


@pytest.mark.promise("jobs:every-run-has-evidence")
@pytest.mark.parametrize("engine", [ScriptedEngine(), LostEngine()])
async def test_cancelling_at_the_very_end_does_not_cost_the_evidence(tmp_path: Path, engine: ScriptedEngine) -> None:
    audit = CancellingAudit()
    bench = JobBench(tmp_path, engine, audit=audit)
    with anyio.CancelScope() as scope:
        audit.scope = scope
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert evidence(bench)["outcome"]["end"] in ("exited", "ENGINE_UNAVAILABLE")
    assert (audit.records[-1].path, bench.store.active) == ("evidence.json", set())


@pytest.mark.promise("jobs:hostile-reports")
async def test_reports_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}))
    sandbox = bench.sandbox()
    with slow_reader(monkeypatch) as (reading, go_on, together):
        async with anyio.create_task_group() as tasks:
            for letter in "ab":
                tasks.start_soon(sandbox.run, a_job_call(letter * 24), a_job(), ignore_progress)
            await anyio.to_thread.run_sync(reading.wait, 10)
            await anyio.sleep(0.3)
            go_on.set()
    assert together == [0, 1]
    assert [run.finished for run in bench.store.runs()] == [True, True]
