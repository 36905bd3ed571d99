"""Every argument of the runner is built by the server."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.jobs.command_line import runner_command

PLAN = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=60)
NODE = replace(PLAN, name="run_playwright", runner=JobRunner.PLAYWRIGHT_NODE)


def test_selected_tests_follow_the_options_of_pytest() -> None:
    words = runner_command(
        replace(PLAN, project="a b", tests=("t.py::x",), keyword="k", markers="m", max_failures=3)
    ).argv
    assert words[:5] == ("/usr/bin/env", "--chdir=/work/a b", "python3", "-m", "pytest")
    assert words[-4:] == ("-k=k", "-m=m", "--", "t.py::x")
    assert "--maxfail=3" in words


@pytest.mark.parametrize("on", [True, False])
def test_the_policy_switches_reach_playwright_in_both_languages(on: bool) -> None:
    word = "on" if on else "off"
    plan = replace(PLAN, runner=JobRunner.PLAYWRIGHT_PYTHON, screenshots=on, videos=on, traces=on)
    assert {f"--screenshot={word}", f"--video={word}", f"--tracing={word}"} <= set(runner_command(plan).argv)
    environment = runner_command(replace(NODE, screenshots=on, videos=on, traces=on)).environment
    assert {environment[f"BROWSER_SHELL_{name}"] for name in ("SCREENSHOTS", "VIDEOS", "TRACES")} == {word}


def test_playwright_filters_are_escaped() -> None:
    words = runner_command(replace(NODE, project="p", tests=("a.b/c.ts:7",), keyword="x (1.0)")).argv
    assert words[-2:] == (r"--grep=x \(1\.0\)", r"^\/work\/p\/a\.b\/c\.ts(?:/|$):7")


@pytest.mark.parametrize(("path", "chosen"), [("tests/ui/a.spec.ts", True), ("tests/ui-slow/a.spec.ts", False)])
def test_a_directory_selects_only_its_own_tests(path: str, chosen: bool) -> None:
    (pattern,) = runner_command(replace(NODE, project="p", tests=("tests/ui",))).argv[-1:]
    assert (re.search(pattern, f"/work/p/{path}") is not None) is chosen


def test_a_file_selects_only_that_file() -> None:
    (pattern,) = runner_command(replace(NODE, project="p", tests=("a.spec.ts",))).argv[-1:]
    assert [bool(re.search(pattern, f"/work/p/{name}")) for name in ("a.spec.ts", "a.spec.tsx")] == [True, False]


def test_the_pytest_cache_is_moved_and_not_disabled() -> None:
    words = runner_command(PLAN).argv
    assert "no:cacheprovider" not in words
    assert ("-o", "cache_dir=/tmp/pytest-cache") in pairwise(words)
