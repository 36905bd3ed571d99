"""The job tools: their schemas, their plans and the effect of the policy."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.core.ports import Tool
from browser_shell.policy.document import PlaywrightSection
from browser_shell.policy.loading import policy_from
from browser_shell.tools.job_tools import RunPlaywrightTool, RunPytestTool, job_tools

PYTEST = RunPytestTool(max_seconds=90)
PLAYWRIGHT = RunPlaywrightTool(artifacts=PlaywrightSection(videos=True, traces=False), max_seconds=90)


def every_object(schema: Any) -> list[dict[str, Any]]:
    found = [schema] if isinstance(schema, dict) and schema.get("type") == "object" else []
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return found + [item for part in inner for item in every_object(part)]


@pytest.mark.parametrize("tool", [PYTEST, PLAYWRIGHT])
def test_every_schema_is_closed(tool: Tool[ContainerJob]) -> None:
    description = tool.describe()
    for schema in (description.input_schema, description.output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert all(part["additionalProperties"] is False for part in every_object(schema))
    assert description.input_schema["properties"].keys().isdisjoint({"command", "cmd", "argv", "args", "env", "image"})  # type: ignore[union-attr]  # a schema


def test_without_arguments_pytest_runs_all_tests() -> None:
    plan = PYTEST.plan(None)
    assert (plan.runner, plan.project, plan.tests, plan.timeout_seconds) == (JobRunner.PYTEST, ".", (), 90)


def test_the_policy_and_not_the_caller_selects_artifacts() -> None:
    plan = PLAYWRIGHT.plan({"language": "node"})
    assert (plan.screenshots, plan.videos, plan.traces) == (True, True, False)
    with pytest.raises(ArgumentsInvalid, match="videos"):
        PLAYWRIGHT.plan({"language": "node", "videos": True})


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({}, "arguments.language"),
        ({"language": "bash"}, "arguments.language"),
        ({"language": "python", "workers": 2}, "arguments.workers"),
        ({"language": "node", "workers": 5}, "arguments.workers"),
        ({"language": "python", "retries": 1}, "arguments.retries"),
        ({"language": "node", "keyword": "-x"}, "arguments.keyword"),
        ({"language": "node", "timeout_sec": 91}, "arguments.timeout_sec"),
        ({"language": "node", "timeout_sec": 1.5}, "arguments.timeout_sec"),
        ({"language": "node", "max_failures": -1}, "arguments.max_failures"),
        ({"language": "node", "output_lines": 401}, "arguments.output_lines"),
        ({"language": "node", "argv": ["id"]}, "arguments.unknown_field"),
        ([], "arguments.shape"),
    ],
)
def test_bad_arguments_name_their_rule(arguments: Any, rule: str) -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        PLAYWRIGHT.plan(arguments)
    assert refused.value.rule_id == rule


@pytest.mark.parametrize(
    ("allowlist", "names"),
    [
        (None, ["run_playwright", "run_pytest"]),
        (["run_pytest"], ["run_pytest"]),
        (["run_pytest", "run_playwright"], ["run_playwright", "run_pytest"]),
    ],
)
def test_the_policy_selects_the_tools(allowlist: list[str] | None, names: list[str]) -> None:
    document = policy_from({"tools": {"allowlist": allowlist}}, source="test")
    allowed = frozenset(allowlist or ["run_playwright", "run_pytest"])
    assert [tool.name for tool in job_tools(document, allowed)] == names
