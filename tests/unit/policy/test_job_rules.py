"""Rules for jobs, applied to plans that a hook may have changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.policy.job_rules import JobPolicy
from browser_shell.policy.loading import policy_from

PYTEST = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=60)
NODE = ContainerJob(name="run_playwright", runner=JobRunner.PLAYWRIGHT_NODE, timeout_seconds=60)


def rule(plan: ContainerJob, **sections: Any) -> str:
    decision = JobPolicy(policy_from(sections, source="test")).decide(plan, {})
    return "" if decision.allowed else decision.rule_id


def test_only_listed_tools_are_allowed() -> None:
    assert rule(PYTEST) == ""
    assert rule(PYTEST, tools={"allowlist": ["run_pytest"]}) == ""
    assert rule(PYTEST, tools={"allowlist": ["run_playwright"]}) == "tools.allowlist"


@pytest.mark.promise("policy:judges-what-runs")
@pytest.mark.parametrize(
    ("plan", "denied_by"),
    [
        (replace(PYTEST, name="run_shell"), "tools.allowlist"),
        (replace(PYTEST, name="browser-shell"), "tools.allowlist"),
        (replace(PYTEST, runner=JobRunner.PLAYWRIGHT_NODE), "job.mismatch"),
        (replace(NODE, videos=True), "playwright.videos"),
        (replace(PYTEST, project="../elsewhere"), "job.selection"),
        (replace(PYTEST, tests=("--rootdir=/",)), "job.selection"),
        (replace(PYTEST, keyword="-x"), "job.selection"),
        (replace(PYTEST, markers="a; b"), "job.selection"),
        (replace(NODE, keyword="$(id)"), "job.selection"),
        (replace(PYTEST, timeout_seconds=121), "sandbox.timeout_seconds"),
        (replace(PYTEST, timeout_seconds=0), "sandbox.timeout_seconds"),
    ],
)
def test_a_plan_that_a_hook_changed_must_follow_the_same_grammar(plan: ContainerJob, denied_by: str) -> None:
    assert rule(plan) == denied_by


@pytest.mark.parametrize("artifact", ["screenshots", "videos", "traces"])
def test_the_policy_selects_the_artifacts_of_playwright(artifact: str) -> None:
    plan = replace(NODE, **{artifact: True})  # type: ignore[arg-type]  # the names are those of flags
    assert rule(plan, playwright={artifact: True}) == ""
    assert rule(plan, playwright={artifact: False}) == f"playwright.{artifact}"
