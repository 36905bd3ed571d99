"""`run_shell` does not exist, and every way to make it exist is shut."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import ConfigurationInvalid, ErrorCode, PolicyBlocked
from browser_shell.core.json_values import JsonValue
from browser_shell.core.plans import ContainerJob, JobRunner
from browser_shell.core.ports import ToolDescription
from browser_shell.hooks.chain import GROUP, JOB_GROUP, HookChain, load_hooks
from browser_shell.pipeline import Pipeline
from browser_shell.policy.job_rules import JobPolicy
from browser_shell.policy.loading import load_policy, policy_from
from browser_shell.runner import ExecutionRunner
from browser_shell.settings import read_settings
from browser_shell.tools.job_tools import job_tools
from browser_shell.tools.registry import ToolRegistry
from support.fakes import (
    FakeClock,
    FakePerson,
    FakeResolver,
    NoLimits,
    RecordingActivity,
    RecordingAudit,
    a_call,
    a_description,
    a_pipeline,
)
from support.job_plans import JobBench, a_job_call

pytestmark = pytest.mark.promise("tools:no-shell")
ALL_FLAGS = {
    "mcp_shell_enabled": True,
    "explicit_approval": True,
    "tools": {"allowlist": ["run_shell"]},
    "shell": {"command_allowlist": ["id"]},
}


class Shell:
    """What somebody would have to register."""

    name = "run_shell"
    uses_protocol_errors = True

    def describe(self) -> ToolDescription:
        return a_description(self.name)

    def plan(self, arguments: JsonValue) -> ContainerJob:
        return ContainerJob(name="run_shell", runner=JobRunner.PYTEST, timeout_seconds=1)


class Rewriting:
    """A hook that turns a harmless job into another one."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    async def before(self, call: ToolCall, plan: ContainerJob) -> ContainerJob:
        return replace(plan, **self.changes)


def job_pipeline(bench: JobBench, *hooks: Rewriting) -> Pipeline[ContainerJob]:
    policy = JobPolicy(bench.document)
    return Pipeline(
        registry=ToolRegistry(job_tools(bench.document, policy.tools)),
        limits=NoLimits(),
        hooks=HookChain.of(hooks),
        policy=policy,
        resolver=FakeResolver(),
        audit=bench.audit,
        runner=ExecutionRunner(containers=bench.sandbox()),
        human=FakePerson(),
        show_activity=RecordingActivity().add,
        clock=FakeClock(),
    )


async def test_the_browsers_profile_refuses_it_with_a_record() -> None:
    audit = RecordingAudit()
    with pytest.raises(PolicyBlocked) as refused:
        await a_pipeline(audit=audit).handle(a_call(tool="run_shell"))
    assert refused.value.code.number == -32004
    assert audit.kinds == ["MCP_TOOL_CALL", "POLICY_BLOCKED", "TOOL_FINISHED"]


async def test_the_write_profile_refuses_it_with_a_record(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    with pytest.raises(PolicyBlocked) as refused:
        await job_pipeline(bench).handle(a_job_call(tool="run_shell", command="id"))
    assert refused.value.code.number == -32004
    assert bench.audit.kinds == ["MCP_TOOL_CALL", "POLICY_BLOCKED", "TOOL_FINISHED"]
    assert bench.engine.orders == []


def test_it_is_in_no_list(tmp_path: Path) -> None:
    assert [tool.name for tool in job_pipeline(JobBench(tmp_path)).tools()] == ["run_playwright", "run_pytest"]


def test_nobody_can_register_it() -> None:
    with pytest.raises(PolicyBlocked):
        ToolRegistry([Shell()])


@pytest.mark.parametrize("key", sorted(ALL_FLAGS))
def test_no_policy_can_allow_it(key: str) -> None:
    for document in ({key: ALL_FLAGS[key]}, ALL_FLAGS):
        with pytest.raises(ConfigurationInvalid):
            policy_from(document, source="test")
    with pytest.raises(ConfigurationInvalid, match="can never be allowed"):
        load_policy("tools:\n  allowlist: [run_pytest, run_shell]\n", source="test")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"name": "run_shell"}, "tools.allowlist"),
        ({"tests": ("-c", "import os; os.system('id')")}, "job.selection"),
        ({"project": "$(id)"}, "job.selection"),
        ({"keyword": "`id`"}, "job.selection"),
    ],
)
async def test_no_hook_can_make_a_job_of_it(tmp_path: Path, changes: dict[str, Any], rule: str) -> None:
    bench = JobBench(tmp_path)
    outcome = await job_pipeline(bench, Rewriting(**changes)).handle(a_job_call())
    assert (outcome.error, outcome.rule_id) == (ErrorCode.POLICY_BLOCKED, rule)
    assert bench.engine.orders == []


async def test_no_hook_can_swap_the_kind_of_a_plan(tmp_path: Path) -> None:
    class Swapping:
        async def before(self, call: ToolCall, plan: ContainerJob) -> Any:
            return "sh -c id"

    bench = JobBench(tmp_path)
    pipeline: Pipeline[ContainerJob] = replace(job_pipeline(bench), hooks=HookChain.of([Swapping()]))
    assert (await pipeline.handle(a_job_call())).error is ErrorCode.HOOK_FAILED
    assert bench.engine.orders == []


@pytest.mark.parametrize("group", [GROUP, JOB_GROUP])
def test_a_plugin_that_brings_a_tool_is_no_hook(group: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="neither"):
        load_hooks([EntryPoint("shell", f"{__name__}:Shell", group)])


def test_no_variable_of_the_environment_brings_it() -> None:
    names = ("MCP_SHELL_ENABLED", "BROWSER_SHELL_TOOLS", "BROWSER_SHELL_RUN_SHELL", "MCP_TOOLS", "TOOLS_ALLOWLIST")
    settings = read_settings({"HOME": "/nonexistent", **dict.fromkeys(names, "run_shell")})
    policy = JobPolicy(settings.policy)
    assert "run_shell" not in policy.tools
    assert [tool.name for tool in job_tools(settings.policy, policy.tools)] == ["run_playwright", "run_pytest"]
    # Even a policy object that somebody built by hand finds no such tool to offer.
    assert job_tools(settings.policy, frozenset({"run_shell"})) == []
