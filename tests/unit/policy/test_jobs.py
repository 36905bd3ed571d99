"""Jobs: the grammar of their arguments, and rules applied to plans that a hook may have changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.policy.jobs import JobPolicy, read_expression, read_project, read_tests, read_text
from browser_shell.policy.loading import policy_from

PYTEST = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=60)
NODE = ContainerJob(name="run_playwright", runner=JobRunner.PLAYWRIGHT_NODE, timeout_seconds=60)


@pytest.mark.parametrize("project", [".", "a", "a/b.c", "a b/c", ".github", "a@1+2=3,4-5"])
def test_a_directory_of_the_workspace_is_a_project(project: str) -> None:
    assert read_project({"project": project}) == project


@pytest.mark.promise("jobs:paths-stay-inside")
@pytest.mark.parametrize(
    "project",
    ["", "/", "/etc", "..", "../a", "a/..", "a/../b", "a/./b", "./a", "a//b", "a/", "-a", "a/-b", "a\0b", "a\nb",
     "~", "a:b", "$HOME", "`id`", "a;b", "a\\b", "ä", "a" * 256, "/".join("a" * 21), 5, None, ["a"], {"a": "b"}],
)  # fmt: skip
def test_other_projects_are_refused(project: Any) -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        read_project({"project": project})
    assert refused.value.rule_id == "arguments.project"


@pytest.mark.parametrize(
    "test", ["tests", "tests/test_a.py", "tests/test_a.py::test_b", "t.py::T::test_b[x-1]", "t.py::test_b[--rootdir=/]"]
)
def test_files_and_node_ids_of_pytest_are_tests(test: str) -> None:
    assert read_tests({"tests": [test]}, node=False) == (test,)


@pytest.mark.parametrize("test", ["tests", "tests/a.spec.ts", "tests/a.spec.ts:12"])
def test_files_and_lines_are_tests_in_node(test: str) -> None:
    assert read_tests({"tests": [test]}, node=True) == (test,)


@pytest.mark.promise("jobs:nothing-becomes-an-option")
@pytest.mark.parametrize("node", [False, True])
@pytest.mark.parametrize(
    "test",
    ["--rootdir=/", "-k", "-", "--", "-p", "@file", "tests/--x/../..", "/work/tests", "../x.py", "a.py::", "a.py::-x",
     "a.py::b\n--x", "a.py::b[\n]", "a.py:0", "a.py:1:2", "a.py:x", "x" * 401, "", 1, None],
)  # fmt: skip
def test_a_test_cannot_be_an_option_or_lead_outside_the_workspace(test: Any, node: bool) -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        read_tests({"tests": ["tests", test]}, node=node)
    assert "tests[1]" in refused.value.public_message


def test_more_than_50_tests_are_refused() -> None:
    assert len(read_tests({"tests": ["a"] * 50}, node=False)) == 50
    for tests in (["a"] * 51, "a", {"a": 1}, None):
        with pytest.raises(ArgumentsInvalid):
            read_tests({"tests": tests}, node=False)  # type: ignore[dict-item]  # a wrong type is the point


@pytest.mark.parametrize("text", ["", "login", "login and not slow", "(a or b) and not (c.d or e_f)", "not a"])
def test_expressions_of_names_are_allowed(text: str) -> None:
    assert read_expression({"keyword": text}, "keyword") == text


@pytest.mark.promise("jobs:nothing-becomes-an-option")
@pytest.mark.parametrize(
    "text",
    ["-x", "--pdb", " -x", "a --pdb", "a  b", "a;b", "__import__('os')", "a[0]", "a\nb", "(a", "a)", "and or not",
     "()", "a" * 201,
     " ", "a=b", "ä", 1, None],
)  # fmt: skip
def test_other_expressions_are_refused(text: Any) -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        read_expression({"keyword": text}, "keyword")
    assert refused.value.rule_id == "arguments.keyword"


@pytest.mark.parametrize(
    ("text", "is_valid"), [("a title: part 2", True), ("-x", False), ("a\nb", False), ("$(id)", False)]
)
def test_part_of_a_title_is_plain_text(text: str, is_valid: bool) -> None:
    if is_valid:
        assert read_text({"keyword": text}, "keyword") == text
    else:
        with pytest.raises(ArgumentsInvalid):
            read_text({"keyword": text}, "keyword")


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
