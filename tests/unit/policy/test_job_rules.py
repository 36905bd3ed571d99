"""The policy's sections for jobs, and how they judge a plan that a hook may have written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from browser_shell.core.containers import ContainerLimits
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.plans import ContainerJob, JobRunner
from browser_shell.policy.job_rules import JobPolicy
from browser_shell.policy.loading import policy_from

PYTEST = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=60)
NODE = ContainerJob(name="run_playwright", runner=JobRunner.PLAYWRIGHT_NODE, timeout_seconds=60)


def rule(plan: ContainerJob, **sections: Any) -> str:
    decision = JobPolicy(policy_from(sections, source="test")).decide(plan, {})
    return "" if decision.allowed else decision.rule_id


@pytest.mark.promise("jobs:limits-only-narrow")
@pytest.mark.parametrize(
    ("section", "key", "largest", "beyond"),
    [
        ("sandbox", "memory_mib", 1024, 1025),
        ("sandbox", "cpus", 1.0, 1.1),
        ("sandbox", "timeout_seconds", 120, 121),
        ("sandbox", "pids", 256, 257),
        ("sandbox", "memory_mib", 384, 383),
        ("sandbox", "max_running", 16, 17),
    ],
)
def test_no_policy_can_lift_a_limit_above_its_ceiling(section: str, key: str, largest: float, beyond: float) -> None:
    policy_from({section: {key: largest}}, source="test")
    with pytest.raises(ConfigurationInvalid, match=f"{section}.{key}"):
        policy_from({section: {key: beyond}}, source="test")


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"tools": {"allowlist": ["run_shell"]}}, "tools.allowlist.0: can never be allowed"),
        ({"tools": {"allowlist": ["browser-shell"]}}, "tools.allowlist.0"),
        ({"tools": {"allowlist": []}}, "tools.allowlist"),
        ({"tools": {"shell": True}}, "tools.shell is an unknown key"),
        ({"playwright": {"pictures": True}}, "playwright.pictures is an unknown key"),
        ({"playwright": {"videos": "yes"}}, "playwright.videos"),
        ({"sandbox": {"network": "host"}}, "sandbox.network is an unknown key"),
        ({"sandbox": {"mounts": []}}, "sandbox.mounts is an unknown key"),
        ({"sandbox": {"engine": "lxc"}}, "sandbox.engine"),
        ({"sandbox": {"workspace_roots": ["/"]}}, "sandbox.workspace_roots.0"),
        ({"sandbox": {"workspace_roots": ["a"]}}, "sandbox.workspace_roots.0"),
        ({"sandbox": {"workspace_roots": ["/a/../b"]}}, "sandbox.workspace_roots.0"),
        ({"sandbox": {"retention": {"max_age_hours": 0}}}, "sandbox.retention.max_age_hours"),
        ({"sandbox": {"retention": {"for_ever": True}}}, "sandbox.retention.for_ever is an unknown key"),
    ],
)
def test_a_wrong_policy_is_refused_and_its_field_named(document: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationInvalid) as wrong:
        policy_from(document, source="test")
    assert field in wrong.value.public_message


def test_the_defaults_are_those_of_the_specification() -> None:
    limits = policy_from({}, source="test").sandbox.limits(120)
    assert limits == ContainerLimits(memory_bytes=1024 * 1024 * 1024, cpus=1.0, timeout_seconds=120)


@pytest.mark.parametrize("memory", [384, 512, 700, 1024])
def test_scratch_and_output_leave_room_for_programs(memory: int) -> None:
    limits = policy_from({"sandbox": {"memory_mib": memory}}, source="test").sandbox.limits(60)
    assert limits.scratch_bytes + limits.output_bytes + 192 * 1024 * 1024 <= limits.memory_bytes
    assert limits.output_bytes >= 64 * 1024 * 1024
    assert limits.timeout_seconds == 60


def test_a_run_may_not_take_longer_than_the_policy_says() -> None:
    assert policy_from({"sandbox": {"timeout_seconds": 30}}, source="test").sandbox.limits(60).timeout_seconds == 30


def test_what_is_not_listed_is_denied() -> None:
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
def test_a_plan_that_a_hook_rewrote_is_held_to_the_same_grammar(plan: ContainerJob, denied_by: str) -> None:
    assert rule(plan) == denied_by


@pytest.mark.parametrize("kept", ["screenshots", "videos", "traces"])
def test_the_policy_switches_what_playwright_keeps(kept: str) -> None:
    switches: dict[str, Any] = {kept: True}
    plan = replace(NODE, **switches)
    assert rule(plan, playwright={kept: True}) == ""
    assert rule(plan, playwright={kept: False}) == f"playwright.{kept}"
