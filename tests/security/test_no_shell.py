"""`run_shell` does not exist, and neither policy, hooks, plugins nor settings can add it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from browser_shell.core.calls import ContainerJob, JobRunner, ToolCall
from browser_shell.core.errors import ConfigurationInvalid, ErrorCode, PolicyBlocked
from browser_shell.core.json_values import JsonValue
from browser_shell.core.ports import ToolDescription
from browser_shell.hooks.chain import GROUP, JOB_GROUP, load_hooks
from browser_shell.policy.jobs import JobPolicy
from browser_shell.policy.loading import load_policy, policy_from
from browser_shell.settings import read_settings
from browser_shell.tools.job_tools import job_tools
from browser_shell.tools.registry import ToolRegistry
from support.fakes import (
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


class ShellTool:
    """A tool with the reserved name."""

    name = "run_shell"
    uses_protocol_errors = True

    def describe(self) -> ToolDescription:
        return a_description(self.name)

    def split(self, arguments: JsonValue) -> Sequence[JsonValue]:
        return (arguments,)

    def plan(self, arguments: JsonValue) -> ContainerJob:
        return ContainerJob(name="run_shell", runner=JobRunner.PYTEST, timeout_seconds=1)


class RewritingHook:
    """A hook that changes the plan of a job."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    async def before(self, call: ToolCall, plan: ContainerJob) -> ContainerJob:
        return replace(plan, **self.changes)


async def test_the_browser_profile_refuses_and_records_run_shell() -> None:
    audit = RecordingAudit()
    with pytest.raises(PolicyBlocked) as refused:
        await a_pipeline(audit=audit).handle(a_call(tool="run_shell"))
    assert refused.value.code.number == -32004
    assert audit.kinds == ["MCP_TOOL_CALL", "POLICY_BLOCKED", "TOOL_FINISHED"]


async def test_the_write_profile_refuses_and_records_run_shell(tmp_path: Path) -> None:
    bench = JobBench(tmp_path)
    with pytest.raises(PolicyBlocked) as refused:
        await bench.pipeline().handle(a_job_call(tool="run_shell", command="id"))
    assert refused.value.code.number == -32004
    assert bench.audit.kinds == ["MCP_TOOL_CALL", "POLICY_BLOCKED", "TOOL_FINISHED"]
    assert bench.engine.orders == []


def test_run_shell_is_not_listed(tmp_path: Path) -> None:
    assert [tool.name for tool in JobBench(tmp_path).pipeline().tools()] == ["run_playwright", "run_pytest"]


def test_run_shell_cannot_be_registered() -> None:
    with pytest.raises(PolicyBlocked):
        ToolRegistry([ShellTool()])


@pytest.mark.parametrize("key", sorted(ALL_FLAGS))
def test_a_policy_cannot_allow_run_shell(key: str) -> None:
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
async def test_a_hook_cannot_turn_a_job_into_a_command(tmp_path: Path, changes: dict[str, Any], rule: str) -> None:
    bench = JobBench(tmp_path)
    outcome = await bench.pipeline(hooks=[RewritingHook(**changes)]).handle(a_job_call())
    assert (outcome.error, outcome.rule_id) == (ErrorCode.POLICY_BLOCKED, rule)
    assert bench.engine.orders == []


async def test_a_hook_cannot_change_the_type_of_a_plan(tmp_path: Path) -> None:
    class SwappingHook:
        async def before(self, call: ToolCall, plan: ContainerJob) -> Any:
            return "sh -c id"

    bench = JobBench(tmp_path)
    assert (await bench.pipeline(hooks=[SwappingHook()]).handle(a_job_call())).error is ErrorCode.HOOK_FAILED
    assert bench.engine.orders == []


@pytest.mark.parametrize("group", [GROUP, JOB_GROUP])
def test_a_plugin_cannot_add_a_tool(group: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="neither"):
        load_hooks([EntryPoint("shell", f"{__name__}:ShellTool", group)])


def test_environment_variables_cannot_add_run_shell() -> None:
    names = ("MCP_SHELL_ENABLED", "BROWSER_SHELL_TOOLS", "BROWSER_SHELL_RUN_SHELL", "MCP_TOOLS", "TOOLS_ALLOWLIST")
    settings = read_settings({"HOME": "/nonexistent", **dict.fromkeys(names, "run_shell")})
    policy = JobPolicy(settings.policy)
    assert "run_shell" not in policy.tools
    assert [tool.name for tool in job_tools(settings.policy, policy.tools)] == ["run_playwright", "run_pytest"]
    # The tools do not include it even if a policy object allows it.
    assert job_tools(settings.policy, frozenset({"run_shell"})) == []
