"""The sandbox records, runs and closes every job, also after faults and cancellation."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from browser_shell.core.calls import JobRunner
from browser_shell.core.containers import ContainerEnd, ContainerOrder
from browser_shell.core.errors import (
    ArgumentsInvalid,
    AuditUnavailable,
    EngineUnavailable,
    ErrorCode,
    RateLimited,
    SandboxViolation,
)
from browser_shell.core.ports import ignore_progress
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.jobs import test_report as job_reports
from browser_shell.jobs.sandbox import require_paths
from browser_shell.jobs.test_report import JobReport
from support.fake_engine import HangingEngine, LostEngine, ScriptedEngine
from support.fakes import FullDiskAudit, RecordingAudit
from support.job_plans import RUN, JobBench, a_job, a_job_call

WELL = b'<testsuite><testcase name="a"/></testsuite>'
RAN = ["MCP_CONTAINER_SPAWN", "MCP_CONTAINER_EXEC", "MCP_CONTAINER_CLEANUP", "MCP_FILE_WRITE", "MCP_FILE_WRITE"]


async def test_a_run_is_recorded_before_it_starts_and_closed_with_evidence(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}))
    result = await bench.run()
    assert bench.audit.kinds == RAN
    assert isinstance(result.data, dict)
    assert (result.data["passed"], result.data["exit_code"], result.data["run_id"]) == (True, 0, RUN)
    written = bench.evidence_file.read_bytes()
    assert bench.audit.records[-1].sha256 == result.evidence_sha256 == hashlib.sha256(written).hexdigest()
    document = bench.evidence
    assert document["complete"] is True
    assert document["audit"] == {"sequence": 2, "sha256": "0" * 64}
    assert [file["path"] for file in document["files"]] == ["report/junit.xml"]
    assert sorted(entry.name for entry in bench.run_directory.iterdir()) == ["evidence.json", "job.log", "output"]
    assert bench.store.active == set()


@pytest.mark.promise("jobs:a-report-cannot-forge-success")
async def test_a_forged_report_does_not_turn_a_failure_into_a_pass(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}, exit_code=1))
    result = await bench.run()
    assert isinstance(result.data, dict)
    assert (result.data["passed"], result.data["exit_code"], result.exit_code) == (False, 1, 1)


async def test_exit_code_0_with_reported_failures_is_no_pass(tmp_path: Path) -> None:
    bad = b'<testsuite><testcase name="a"><failure message="no"/></testcase></testsuite>'
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": bad}))
    result = await bench.run()
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
async def test_a_run_that_reached_a_limit_is_an_error_with_evidence(
    tmp_path: Path, end: ContainerEnd, code: ErrorCode
) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(end=end, exit_code=137, files={"half.txt": b"half"}))
    result = await bench.run()
    assert (result.error, result.run_id) == (code, RUN)
    assert bench.evidence["outcome"]["end"] == end.value
    assert [file["path"] for file in bench.evidence["files"]] == ["half.txt"]


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.parametrize("full_at", [RecordKind.MCP_CONTAINER_SPAWN, RecordKind.MCP_CONTAINER_EXEC])
async def test_nothing_starts_when_the_start_cannot_be_recorded(tmp_path: Path, full_at: RecordKind) -> None:
    bench = JobBench(tmp_path, audit=FullDiskAudit(full_at=full_at))
    result = await bench.run()
    assert result.error is ErrorCode.AUDIT_UNAVAILABLE
    assert bench.engine.started == []
    assert bench.evidence["complete"] is False


async def test_an_engine_failure_during_a_run_is_an_error_with_evidence(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, LostEngine())
    result = await bench.run()
    assert (result.error, result.run_id) == (ErrorCode.ENGINE_UNAVAILABLE, RUN)
    assert (bench.evidence["complete"], bench.evidence["outcome"]["exit_code"]) == (False, None)
    assert bench.audit.records[2].error == "ENGINE_UNAVAILABLE"


@pytest.mark.promise("jobs:cancelling-kills")
async def test_a_cancelled_job_is_killed_and_its_evidence_records_it(tmp_path: Path) -> None:
    engine = HangingEngine()
    bench = JobBench(tmp_path, engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.run)
        with anyio.fail_after(5):
            await engine.running.wait()
        assert bench.store.active == {RUN}
        tasks.cancel_scope.cancel()
    assert engine.killed
    assert bench.evidence["outcome"]["end"] == "cancelled"
    assert "MCP_CONTAINER_CLEANUP" in bench.audit.kinds
    assert bench.store.active == set()


async def test_a_job_beyond_max_running_is_rate_limited(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, policy={"sandbox": {"max_running": 1}})
    bench.store.active.add("another")
    with pytest.raises(RateLimited) as refused:
        await bench.run()
    assert refused.value.retry_after_seconds
    assert bench.engine.orders == []


async def test_progress_is_reported_until_the_end(tmp_path: Path) -> None:
    engine = HangingEngine()
    bench = JobBench(tmp_path, engine)
    reports: list[tuple[float, float, str]] = []
    second = anyio.Event()

    async def on_progress(done: float, total: float, message: str) -> None:
        reports.append((done, total, message))
        if len(reports) > 1:
            second.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(bench.run, progress=on_progress))
        with anyio.fail_after(5):
            await second.wait()
        tasks.cancel_scope.cancel()
    assert reports[0][:2] == (0.0, 60.0)
    assert all(message for _, _, message in reports)


@pytest.mark.promise("jobs:paths-stay-inside")
async def test_a_refused_path_is_recorded_and_nothing_runs(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    (bench.workspace / "out").symlink_to(tmp_path)
    for project, error in (("out", SandboxViolation), ("none", ArgumentsInvalid)):
        with pytest.raises(error):
            await bench.run(a_job(project=project))
    assert bench.audit.kinds == ["MCP_COMMAND_BLOCKED"] * 2
    assert [record.rule_id for record in bench.audit.records] == ["workspace.outside", "workspace.missing"]
    assert bench.engine.orders == []


async def test_a_refusal_that_cannot_be_recorded_raises_audit_unavailable(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, audit=FullDiskAudit(full_at=RecordKind.MCP_COMMAND_BLOCKED))
    with pytest.raises(AuditUnavailable):
        await bench.run(a_job(project="none"))


async def test_the_order_is_built_by_the_server(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    await bench.run(a_job(runner=JobRunner.PLAYWRIGHT_NODE, timeout_seconds=7))
    (order,) = bench.engine.orders
    assert order.argv[:2] == ("/usr/bin/env", "--chdir=/work")
    assert (order.workspace, order.limits.timeout_seconds) == (bench.workspace, 7)
    assert order.output.parent == order.log_path.parent == bench.run_directory


async def test_a_run_without_a_directory_does_not_start(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    bench.run_directory.mkdir()
    with pytest.raises(EngineUnavailable):
        await bench.run()
    assert bench.engine.orders == []
    assert bench.store.active == set()


async def test_evidence_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    class Obstructing(ScriptedEngine):
        async def work(self, order: ContainerOrder) -> None:
            (order.output.parent / "evidence.json" / "in the way").mkdir(parents=True)

    with pytest.raises(EngineUnavailable):
        await JobBench(tmp_path, Obstructing()).run()


class Breaking(ScriptedEngine):
    """An engine that raises an unexpected error."""

    async def work(self, order: ContainerOrder) -> None:
        raise ZeroDivisionError


@pytest.mark.promise("jobs:every-run-has-evidence")
async def test_an_unexpected_error_leaves_evidence_too(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, Breaking())
    with pytest.raises(ExceptionGroup):
        await bench.run()
    assert (bench.evidence["complete"], bench.evidence["outcome"]["end"]) == (False, "failed")
    assert bench.audit.kinds[2:] == ["MCP_CONTAINER_CLEANUP", "MCP_FILE_WRITE"]
    assert bench.audit.records[2].error == "FAILED"
    assert bench.store.active == set()


@pytest.mark.promise("jobs:hostile-reports")
async def test_a_report_that_breaks_the_parser_does_not_prevent_evidence(tmp_path: Path) -> None:
    hostile = b'<?xml version="1.0" encoding="rot13"?><testsuite/>'
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": hostile}))
    result = await bench.run()
    assert isinstance(result.data, dict)
    assert result.data["counts"] is None
    assert bench.evidence["complete"] is True
    assert bench.audit.kinds == RAN


@contextmanager
def slow_parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event, list[int]]]:
    """Make every parser block until `release` is set. `counts` holds the current and the highest number of parsers."""
    parsing, release, counts = threading.Event(), threading.Event(), [0, 0]

    def read(content: bytes) -> JobReport | None:
        counts[0] += 1
        counts[1] = max(counts)
        parsing.set()
        release.wait(10)
        counts[0] -= 1
        return job_reports.read_junit(content)

    monkeypatch.setitem(job_reports.READERS, ".xml", read)
    yield parsing, release, counts
    release.set()


@pytest.mark.promise("jobs:every-run-has-evidence")
async def test_cancelling_while_the_report_is_parsed_does_not_prevent_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}))
    with slow_parser(monkeypatch) as (parsing, release, _), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.run)
            await anyio.to_thread.run_sync(parsing.wait, 10)
            scope.cancel()
            release.set()
    assert scope.cancelled_caught
    assert bench.evidence["outcome"]["end"] == "exited"
    assert bench.evidence["outcome"]["counts_by_the_job_itself"]["passed"] == 1
    assert bench.audit.kinds == RAN


class CancellingAudit(RecordingAudit):
    """Cancels the run while its end is being recorded."""

    scope: anyio.CancelScope

    async def record(self, record: AuditRecord) -> None:
        if record.kind is RecordKind.MCP_CONTAINER_CLEANUP:
            self.scope.cancel()
        await super().record(record)


@pytest.mark.promise("jobs:every-run-has-evidence")
@pytest.mark.parametrize("engine", [ScriptedEngine(), LostEngine()])
async def test_cancelling_at_the_very_end_does_not_prevent_evidence(tmp_path: Path, engine: ScriptedEngine) -> None:
    audit = CancellingAudit()
    bench = JobBench(tmp_path, engine, audit=audit)
    with anyio.CancelScope() as scope:
        audit.scope = scope
        await bench.run()
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert bench.evidence["outcome"]["end"] in ("exited", "ENGINE_UNAVAILABLE")
    assert (audit.records[-1].path, bench.store.active) == ("evidence.json", set())


@pytest.mark.promise("jobs:hostile-reports")
async def test_reports_are_parsed_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = JobBench(tmp_path, ScriptedEngine(files={"report/junit.xml": WELL}))
    sandbox = bench.sandbox()
    with slow_parser(monkeypatch) as (parsing, release, counts):
        async with anyio.create_task_group() as tasks:
            for letter in "ab":
                tasks.start_soon(sandbox.run, a_job_call(letter * 24), a_job(), ignore_progress)
            await anyio.to_thread.run_sync(parsing.wait, 10)
            await anyio.sleep(0.3)
            release.set()
    assert counts == [0, 1]
    assert [run.finished for run in bench.store.runs()] == [True, True]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.mark.promise("jobs:paths-stay-inside")
def test_a_link_that_leads_out_of_the_workspace_is_a_violation(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    (workspace / "p").mkdir()
    (workspace / "p" / "up").symlink_to("..")
    (workspace / "p" / "passwd.py").symlink_to("/etc/passwd")
    for job in (a_job(project="out"), a_job(project="p", tests=("passwd.py",))):
        with pytest.raises(SandboxViolation) as refused:
            require_paths(workspace, job)
        assert refused.value.rule_id == "workspace.outside"
    require_paths(workspace, a_job(project="p", tests=("up/p",)))


@pytest.mark.parametrize("job", [{"project": "none"}, {"project": "file"}, {"tests": ("none.py::a",)}])
def test_a_missing_path_is_a_bad_argument(workspace: Path, job: dict[str, Any]) -> None:
    (workspace / "file").touch()
    with pytest.raises(ArgumentsInvalid):
        require_paths(workspace, a_job(**job))


def test_a_name_that_is_too_long_is_a_bad_argument(workspace: Path) -> None:
    with pytest.raises(ArgumentsInvalid, match=r"^project: .*File name too long") as refused:
        require_paths(workspace, a_job(project="a" * 300))
    assert refused.value.rule_id == "workspace.missing"


def test_a_directory_without_access_is_a_bad_argument(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_stat = Path.stat

    def denied_stat(path: Path, **options: bool) -> os.stat_result:
        # Simulated, because root may enter every directory.
        if path.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_stat(path, **options)

    monkeypatch.setattr(Path, "stat", denied_stat)
    with pytest.raises(ArgumentsInvalid, match=r"^tests\[0\]: .*Permission denied"):
        require_paths(workspace, a_job(tests=("closed",)))
