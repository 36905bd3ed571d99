"""Builds the runner's command line from a plan. A value of the caller never stands where it could be an option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from browser_shell.core.calls import ContainerJob, JobRunner

WORK = "/work"
OUTPUT = "/output"
JUNIT_REPORT = "report/junit.xml"
PLAYWRIGHT_REPORT = "report/playwright.json"
NODE_CONFIG = "/usr/local/lib/browser-shell/playwright.config.mjs"
"""In the job image. Overrides the project's own configuration with the policy's switches."""
_RESULTS = f"{OUTPUT}/test-results"
_CACHE = "/tmp/pytest-cache"  # noqa: S108 - a path inside the container


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerCommand:
    """The command to run in the container. `report` is the path of its report, relative to /output."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    report: str


def runner_command(plan: ContainerJob) -> RunnerCommand:
    directory = WORK if plan.project == "." else f"{WORK}/{plan.project}"
    # The container starts in the workspace, not in the project.
    enter = ("/usr/bin/env", f"--chdir={directory}")
    if plan.runner is JobRunner.PLAYWRIGHT_NODE:
        return RunnerCommand(
            argv=(*enter, *_playwright_node(plan, directory)),
            environment=_node_environment(plan, directory),
            report=PLAYWRIGHT_REPORT,
        )
    options = _playwright_python(plan) if plan.runner is JobRunner.PLAYWRIGHT_PYTHON else ()
    return RunnerCommand(argv=(*enter, *_pytest(plan, directory, options)), environment={}, report=JUNIT_REPORT)


def _pytest(plan: ContainerJob, directory: str, options: tuple[str, ...]) -> tuple[str, ...]:
    return (
        "python3", "-m", "pytest",
        f"--rootdir={directory}",
        "--color=no",
        # The workspace is read-only. Projects may use the cache fixture, so the cache is moved, not disabled.
        "-o", f"cache_dir={_CACHE}",
        f"--junitxml={OUTPUT}/{JUNIT_REPORT}",
        f"--maxfail={plan.max_failures}",
        *options,
        *((f"-k={plan.keyword}",) if plan.keyword else ()),
        *((f"-m={plan.markers}",) if plan.markers else ()),
        "--",
        *plan.tests,
    )  # fmt: skip


def _playwright_python(plan: ContainerJob) -> tuple[str, ...]:
    return (
        "--browser=chromium",
        f"--screenshot={_switch(plan.screenshots)}",
        f"--video={_switch(plan.videos)}",
        f"--tracing={_switch(plan.traces)}",
        f"--output={_RESULTS}",
    )


def _playwright_node(plan: ContainerJob, directory: str) -> tuple[str, ...]:
    return (
        "playwright-node", "test",
        f"--config={NODE_CONFIG}",
        f"--output={_RESULTS}",
        "--reporter=line,json",
        f"--workers={plan.workers}",
        f"--retries={plan.retries}",
        *((f"--max-failures={plan.max_failures}",) if plan.max_failures else ()),
        *((f"--grep={_escape_regex(plan.keyword)}",) if plan.keyword else ()),
        *(_file_filter(test, directory) for test in plan.tests),
    )  # fmt: skip


def _file_filter(test: str, directory: str) -> str:
    """Return Playwright's filter for a file or directory: a regular expression on absolute paths, and a line."""
    path, _, line = test.partition(":")
    return f"^{_escape_regex(f'{directory}/{path}')}(?:/|$)" + (f":{line}" if line else "")


def _escape_regex(text: str) -> str:
    """Escape text for a JavaScript regular expression."""
    return re.sub(r"[.*+?^${}()|\[\]\\/]", lambda match: f"\\{match[0]}", text)


def _node_environment(plan: ContainerJob, directory: str) -> dict[str, str]:
    return {
        "PLAYWRIGHT_JSON_OUTPUT_NAME": f"{OUTPUT}/{PLAYWRIGHT_REPORT}",
        "BROWSER_SHELL_PROJECT": directory,
        "BROWSER_SHELL_SCREENSHOTS": _switch(plan.screenshots),
        "BROWSER_SHELL_VIDEOS": _switch(plan.videos),
        "BROWSER_SHELL_TRACES": _switch(plan.traces),
        "NO_COLOR": "1",
        "CI": "1",
    }


def _switch(on: bool) -> str:
    return "on" if on else "off"
