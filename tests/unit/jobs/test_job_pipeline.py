"""What the pipeline says of a job that it ended itself."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from browser_shell import pipeline as pipeline_module
from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import ErrorCode
from browser_shell.core.plans import ContainerJob
from browser_shell.core.ports import Limits
from browser_shell.core.results import CommandResult
from browser_shell.hooks.chain import HookChain
from browser_shell.pipeline import Pipeline
from browser_shell.policy.job_rules import JobPolicy
from browser_shell.runner import ExecutionRunner
from browser_shell.server.common import SystemClock
from browser_shell.tools.job_tools import job_tools
from browser_shell.tools.registry import ToolRegistry
from support.fake_engine import HangingEngine, ScriptedEngine
from support.fakes import FakePerson, FakeResolver, NoLimits, RecordingActivity
from support.gates import a_local_gate
from support.job_plans import RUN, JobBench, a_job_call


class BrokenFirst:
    async def before(self, call: ToolCall, plan: ContainerJob) -> ContainerJob:
        raise ZeroDivisionError


class BrokenHook:
    async def after(self, call: ToolCall, plan: ContainerJob, result: CommandResult) -> CommandResult:
        raise ZeroDivisionError


def job_pipeline(
    bench: JobBench, limits: Limits | None = None, hooks: HookChain[ContainerJob] | None = None
) -> Pipeline[ContainerJob]:
    policy = JobPolicy(bench.document)
    return Pipeline(
        registry=ToolRegistry(job_tools(bench.document, policy.tools)),
        limits=limits or NoLimits(),
        hooks=hooks or HookChain.of(()),
        policy=policy,
        resolver=FakeResolver(),
        audit=bench.audit,
        runner=ExecutionRunner(containers=bench.sandbox()),
        human=FakePerson(),
        show_activity=RecordingActivity().add,
        clock=bench.clock,
    )


async def test_a_job_whose_budget_ends_names_its_run(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, HangingEngine())
    limits = a_local_gate(SystemClock(), budget={"elapsed_seconds": 1, "window_seconds": 100})
    with anyio.fail_after(20):
        outcome = await job_pipeline(bench, limits).handle(a_job_call())
    assert (outcome.error, outcome.run_id) == (ErrorCode.BUDGET_EXCEEDED, RUN)
    assert json.loads((bench.run_directory / "evidence.json").read_bytes())["outcome"]["end"] == "cancelled"
    assert (bench.audit.kinds[-1], bench.audit.records[-1].run_id) == ("TOOL_FINISHED", RUN)
    refused = await job_pipeline(bench, limits).handle(a_job_call("b" * 24))
    assert (refused.error, refused.run_id) == (ErrorCode.BUDGET_EXCEEDED, ""), "nothing ran"


async def test_a_job_that_the_pipeline_stops_waiting_for_names_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = JobBench(tmp_path, HangingEngine())
    monkeypatch.setattr(pipeline_module, "RUNNER_GRACE_SECONDS", -120.5)
    with anyio.fail_after(20):
        outcome = await job_pipeline(bench).handle(a_job_call(timeout_sec=1))
    assert (outcome.error, outcome.run_id) == (ErrorCode.TIMEOUT, RUN)


async def test_a_job_whose_result_is_withheld_names_its_run(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine())
    outcome = await job_pipeline(bench, hooks=HookChain.of((BrokenHook(),))).handle(a_job_call())
    assert (outcome.rule_id, outcome.run_id) == ("hook.after", RUN)


async def test_a_job_that_never_began_names_no_run(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine())
    outcome = await job_pipeline(bench, hooks=HookChain.of((BrokenFirst(),))).handle(a_job_call())
    assert (outcome.rule_id, outcome.run_id) == ("hook.before", "")
    assert not bench.run_directory.exists()
