"""The tools `run_pytest` and `run_playwright`: their descriptions for clients, and their arguments as plans."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.ports import Tool, ToolDescription
from browser_shell.policy.arguments import Range, object_schema, read_number, require_fields
from browser_shell.policy.document import PlaywrightSection, PolicyDocument
from browser_shell.policy.jobs import (
    DEFAULT_OUTPUT_LINES,
    MAX_EXPRESSION_CHARACTERS,
    MAX_OUTPUT_LINES,
    MAX_PATH_CHARACTERS,
    MAX_TEST_CHARACTERS,
    MAX_TESTS,
    read_choice,
    read_expression,
    read_project,
    read_tests,
    read_text,
)

MAX_FAILURES = Range(least=0, most=1000, default=0)
OUTPUT_LINES = Range(least=0, most=MAX_OUTPUT_LINES, default=DEFAULT_OUTPUT_LINES)
WORKERS = Range(least=1, most=4, default=1)
RETRIES = Range(least=0, most=3, default=0)
# Python's runner has neither, so only the default is valid there.
PYTHON_WORKERS = Range(least=1, most=1, default=1)
PYTHON_RETRIES = Range(least=0, most=0, default=0)
LANGUAGES = ("python", "node")

_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_TEXT: JsonObject = {"type": "string"}
_COMMON_PROPERTIES: JsonObject = {
    "project": {
        "type": "string",
        "maxLength": MAX_PATH_CHARACTERS,
        "default": ".",
        "description": "Directory of the workspace to run in; relative",
    },
    "tests": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_TEST_CHARACTERS},
        "maxItems": MAX_TESTS,
        "description": "What to run, relative to project; none means all",
    },
    "max_failures": {**MAX_FAILURES.schema(), "description": "Stop after this many; 0: never"},
    "output_lines": {**OUTPUT_LINES.schema(), "description": "Last lines of output to return"},
}


def _expression(description: str) -> JsonObject:
    return {"type": "string", "maxLength": MAX_EXPRESSION_CHARACTERS, "description": description}


def job_tools(document: PolicyDocument, allowed: Collection[str]) -> list[Tool[ContainerJob]]:
    """Return the allowed job tools, always in the same order."""
    seconds = document.sandbox.timeout_seconds
    tools: list[Tool[ContainerJob]] = [
        RunPlaywrightTool(artifacts=document.playwright, max_seconds=seconds),
        RunPytestTool(max_seconds=seconds),
    ]
    return [tool for tool in tools if tool.name in allowed]


class _JobTool:
    """The common part of both tools."""

    name: str
    description: str
    own_properties: ClassVar[JsonObject]
    """Schema of the arguments that only this tool has."""
    required: tuple[str, ...] = ()
    uses_protocol_errors = True

    def __init__(self, *, max_seconds: int) -> None:
        self._timeout = Range(least=1, most=max_seconds, default=max_seconds)
        self._properties = {**_COMMON_PROPERTIES, **self.own_properties, "timeout_sec": self._timeout.schema()}

    def describe(self) -> ToolDescription:
        """Return the entry in `tools/list`."""
        return ToolDescription(
            name=self.name,
            description=self.description,
            input_schema=object_schema(self._properties, required=self.required),
            output_schema=output_schema(),
            annotations={
                "readOnlyHint": False,
                "destructiveHint": False,
                "idempotentHint": False,
                "openWorldHint": False,
            },
        )

    def split(self, arguments: JsonValue) -> tuple[JsonValue, ...]:
        """Jobs have no steps."""
        return (arguments,)


class RunPytestTool(_JobTool):
    """One run of pytest, of at most `max_seconds`."""

    name = "run_pytest"
    description = """\
Run pytest on the workspace in a fresh container without network. The code is read-only; files that tests write to \
/output become artifacts. tests: paths or node ids such as tests/test_a.py::test_b. Failing tests are a result \
(passed: false), not an error."""
    own_properties: ClassVar[JsonObject] = {
        "keyword": _expression("As pytest -k: names, and, or, not, brackets"),
        "markers": _expression("As pytest -m"),
    }

    def plan(self, arguments: JsonValue) -> ContainerJob:
        """Raises: ArgumentsInvalid."""
        fields = require_fields({} if arguments is None else arguments, self._properties)
        return ContainerJob(
            name=self.name,
            runner=JobRunner.PYTEST,
            project=read_project(fields),
            tests=read_tests(fields, node=False),
            keyword=read_expression(fields, "keyword"),
            markers=read_expression(fields, "markers"),
            max_failures=read_number(fields, "max_failures", MAX_FAILURES),
            output_lines=read_number(fields, "output_lines", OUTPUT_LINES),
            timeout_seconds=read_number(fields, "timeout_sec", self._timeout),
        )


class RunPlaywrightTool(_JobTool):
    """One run of Playwright. `artifacts` are those that the policy keeps."""

    name = "run_playwright"
    description = """\
Run Playwright tests of the workspace in a fresh container with Chromium and without network: pages come from files or \
servers that the tests start. language python: pytest with pytest-playwright; node: playwright test. Screenshots, \
traces and files written to /output become artifacts. Failing tests are a result (passed: false), not an error."""
    own_properties: ClassVar[JsonObject] = {
        "language": {"type": "string", "enum": list(LANGUAGES)},
        "keyword": _expression("python: as pytest -k; node: part of the title"),
        "workers": {**WORKERS.schema(), "description": "node only"},
        "retries": {**RETRIES.schema(), "description": "node only"},
    }
    required = ("language",)

    def __init__(self, *, artifacts: PlaywrightSection, max_seconds: int) -> None:
        super().__init__(max_seconds=max_seconds)
        self._artifacts = artifacts

    def plan(self, arguments: JsonValue) -> ContainerJob:
        """Raises: ArgumentsInvalid."""
        fields = require_fields(arguments, self._properties)
        node = read_choice(fields, "language", LANGUAGES) == "node"
        return ContainerJob(
            name=self.name,
            runner=JobRunner.PLAYWRIGHT_NODE if node else JobRunner.PLAYWRIGHT_PYTHON,
            project=read_project(fields),
            tests=read_tests(fields, node=node),
            keyword=(read_text if node else read_expression)(fields, "keyword"),
            max_failures=read_number(fields, "max_failures", MAX_FAILURES),
            workers=read_number(fields, "workers", WORKERS if node else PYTHON_WORKERS),
            retries=read_number(fields, "retries", RETRIES if node else PYTHON_RETRIES),
            output_lines=read_number(fields, "output_lines", OUTPUT_LINES),
            screenshots=self._artifacts.screenshots,
            videos=self._artifacts.videos,
            traces=self._artifacts.traces,
            timeout_seconds=read_number(fields, "timeout_sec", self._timeout),
        )


def output_schema() -> JsonObject:
    """Return the schema of a finished run. A run that timed out or broke a container rule is an error instead."""
    counts = ("passed", "failed", "errors", "skipped", "timed_out", "flaky")
    return object_schema(
        {
            "run_id": _TEXT,
            "passed": {
                "type": "boolean",
                "description": "The exit code is 0, and a readable report contains no failure",
            },
            "exit_code": {"type": "integer", "description": "As the container engine reports it"},
            "seconds": {"type": "number"},
            "counts": {
                "anyOf": [object_schema(dict.fromkeys(counts, _COUNT)), {"type": "null"}],
                "description": "As the job itself reports them; null without a readable report",
            },
            "failures": {"type": "array", "items": object_schema({"test": _TEXT, "message": _TEXT})},
            "failures_left_out": _COUNT,
            "output": {"type": "string", "description": "The last lines; all of it is in job.log"},
            "output_cut": {"type": "boolean"},
            "artifacts_complete": {"type": "boolean"},
            "artifacts": {
                "type": "array",
                "items": object_schema({"path": _TEXT, "size": _COUNT, "sha256": _TEXT, "mime": _TEXT}),
            },
            "artifacts_left_out": _COUNT,
            "refused_artifacts": _COUNT,
            "evidence_sha256": _TEXT,
        }
    )
