"""The tool `run_pytest`: what clients read about it, and the step from their arguments to a plan."""

from __future__ import annotations

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.plans import ContainerJob, JobRunner
from browser_shell.policy.job_arguments import (
    read_expression,
    read_number,
    read_project,
    read_tests,
    require_fields,
)
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

NAME = "run_pytest"
DESCRIPTION = """\
Run pytest on the workspace in a fresh container without network. The code is read-only; files that tests write to \
/output become artifacts. tests: paths or node ids such as tests/test_a.py::test_b. Failing tests are a result \
(passed: false), not an error."""


class RunPytestTool:
    """One run of pytest. `max_seconds` is what the policy left."""

    name = NAME
    fails_by_protocol = True

    def __init__(self, *, max_seconds: int) -> None:
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
        given = require_fields({} if arguments is None else arguments, _FIELDS)
        return ContainerJob(
            name=NAME,
            runner=JobRunner.PYTEST,
            project=read_project(given),
            tests=read_tests(given, node=False),
            keyword=read_expression(given, "keyword"),
            markers=read_expression(given, "markers"),
            max_failures=read_number(given, "max_failures", MAX_FAILURES),
            output_lines=read_number(given, "output_lines", OUTPUT_LINES),
            timeout_seconds=read_number(given, "timeout_sec", self._timeout),
        )

    def _input_schema(self) -> JsonObject:
        return input_schema(
            {
                "keyword": expression("As pytest -k: names, and, or, not, brackets"),
                "markers": expression("As pytest -m"),
                "timeout_sec": self._timeout.schema(),
            }
        )


_FIELDS = ("project", "tests", "keyword", "markers", "max_failures", "output_lines", "timeout_sec")
