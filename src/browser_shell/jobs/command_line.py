"""From a plan to the words of a runner. Every word is ours, or stands where it cannot become an option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from browser_shell.core.plans import ContainerJob, JobRunner

WORK = "/work"
OUTPUT = "/output"
JUNIT_REPORT = "report/junit.xml"
PLAYWRIGHT_REPORT = "report/playwright.json"
NODE_CONFIG = "/usr/local/lib/browser-shell/playwright.config.mjs"
"""In the job image. It takes the project's own configuration and puts the policy's switches over it."""
_RESULTS = f"{OUTPUT}/test-results"
_CACHE = "/tmp/pytest-cache"  # noqa: S108  of a container that has nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWords:
    """What to run in the container, and where its report will be, relative to /output."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    report: str


def runner_command(plan: ContainerJob) -> JobWords:
    directory = WORK if plan.project == "." else f"{WORK}/{plan.project}"
    # The container's working directory is the workspace, whatever the project.
    enter = ("/usr/bin/env", f"--chdir={directory}")
    if plan.runner is JobRunner.PLAYWRIGHT_NODE:
        return JobWords(
            argv=(*enter, *_playwright_node(plan, directory)),
            environment=_node_environment(plan, directory),
            report=PLAYWRIGHT_REPORT,
        )
    own = _playwright_python(plan) if plan.runner is JobRunner.PLAYWRIGHT_PYTHON else ()
    return JobWords(argv=(*enter, *_pytest(plan, directory, own)), environment={}, report=JUNIT_REPORT)


def _pytest(plan: ContainerJob, directory: str, own: tuple[str, ...]) -> tuple[str, ...]:
    return (
        "python3", "-m", "pytest",
        f"--rootdir={directory}",
        "--color=no",
        # The workspace is read-only, and projects may ask for what the cache offers.
        "-o", f"cache_dir={_CACHE}",
        f"--junitxml={OUTPUT}/{JUNIT_REPORT}",
        f"--maxfail={plan.max_failures}",
        *own,
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
        *((f"--grep={_literally(plan.keyword)}",) if plan.keyword else ()),
        *(_file_filter(test, directory) for test in plan.tests),
    )  # fmt: skip


def _file_filter(test: str, directory: str) -> str:
    """Playwright reads these as patterns over absolute paths, with the line behind: one file, or one folder."""
    path, _, line = test.partition(":")
    return f"^{_literally(f'{directory}/{path}')}(?:/|$)" + (f":{line}" if line else "")


def _literally(text: str) -> str:
    """The pattern that means this text and nothing else, for JavaScript."""
    return re.sub(r"[.*+?^${}()|\[\]\\/]", lambda found: f"\\{found[0]}", text)


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
