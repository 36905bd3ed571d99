"""The tool `run_playwright`: what clients read about it, and the step from their arguments to a plan."""

from __future__ import annotations

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.plans import ContainerJob, JobRunner
from browser_shell.policy.job_arguments import (
    Range,
    read_choice,
    read_expression,
    read_number,
    read_project,
    read_tests,
    read_text,
    require_fields,
)
from browser_shell.policy.job_sections import PlaywrightSection
from browser_shell.tools.description import Description
from browser_shell.tools.job_schema import (
    ANNOTATIONS,
    MAX_FAILURES,
    OUTPUT_LINES,
    expression,
    input_schema,
    output_schema,
    timeout_range,
)

NAME = "run_playwright"
DESCRIPTION = """\
Run Playwright tests of the workspace in a fresh container with Chromium and without network: pages come from files or \
servers that the tests start. language python: pytest with pytest-playwright; node: playwright test. Screenshots, \
traces and files written to /output become artifacts. Failing tests are a result (passed: false), not an error."""
WORKERS = Range(least=1, most=4, default=1)
RETRIES = Range(least=0, most=3, default=0)
LANGUAGES = ("python", "node")


class RunPlaywrightTool:
    """One run of Playwright. `kept` and `max_seconds` are what the policy left."""

    name = NAME
    fails_by_protocol = True

    def __init__(self, *, kept: PlaywrightSection, max_seconds: int) -> None:
        self._kept = kept
        self._timeout = timeout_range(max_seconds)

    def describe(self) -> Description:
        """The entry in `tools/list`."""
        return Description(
            name=NAME,
            description=DESCRIPTION,
            input_schema=self._input_schema(),
            output_schema=output_schema(),
            annotations=ANNOTATIONS,
        )

    def plan(self, arguments: JsonValue) -> ContainerJob:
        """Raises: ArgumentsInvalid."""
        given = require_fields(arguments, _FIELDS)
        node = read_choice(given, "language", LANGUAGES) == "node"
        return ContainerJob(
            name=NAME,
            runner=JobRunner.PLAYWRIGHT_NODE if node else JobRunner.PLAYWRIGHT_PYTHON,
            project=read_project(given),
            tests=read_tests(given, node=node),
            keyword=(read_text if node else read_expression)(given, "keyword"),
            max_failures=read_number(given, "max_failures", MAX_FAILURES),
            workers=read_number(given, "workers", WORKERS if node else _NODE_ONLY[0]),
            retries=read_number(given, "retries", RETRIES if node else _NODE_ONLY[1]),
            output_lines=read_number(given, "output_lines", OUTPUT_LINES),
            screenshots=self._kept.screenshots,
            videos=self._kept.videos,
            traces=self._kept.traces,
            timeout_seconds=read_number(given, "timeout_sec", self._timeout),
        )

    def _input_schema(self) -> JsonObject:
        return input_schema(
            {
                "language": {"type": "string", "enum": list(LANGUAGES)},
                "keyword": expression("python: as pytest -k; node: part of the title"),
                "workers": {**WORKERS.schema(), "description": "node only"},
                "retries": {**RETRIES.schema(), "description": "node only"},
                "timeout_sec": self._timeout.schema(),
            },
            required=("language",),
        )


_FIELDS = (
    "language", "project", "tests", "keyword", "max_failures", "workers", "retries", "output_lines", "timeout_sec",
)  # fmt: skip
_NODE_ONLY = (Range(least=1, most=1, default=1), Range(least=0, most=0, default=0))
"""What workers and retries can be in Python, where nothing would obey them."""
