"""The parts of the job tools' schemas that they share."""

from __future__ import annotations

from browser_shell.core.json_values import JsonObject
from browser_shell.policy.job_arguments import (
    DEFAULT_OUTPUT_LINES,
    MAX_EXPRESSION_CHARACTERS,
    MAX_OUTPUT_LINES,
    MAX_PATH_CHARACTERS,
    MAX_TEST_CHARACTERS,
    MAX_TESTS,
    Range,
)

MAX_FAILURES = Range(least=0, most=1000, default=0)
OUTPUT_LINES = Range(least=0, most=MAX_OUTPUT_LINES, default=DEFAULT_OUTPUT_LINES)
ANNOTATIONS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}

_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_TEXT: JsonObject = {"type": "string"}


def timeout_range(most_seconds: int) -> Range:
    return Range(least=1, most=most_seconds, default=most_seconds)


def input_schema(properties: JsonObject, *, required: tuple[str, ...] = ()) -> JsonObject:
    """A closed object with what every job takes."""
    shared: JsonObject = {
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
    return {
        "type": "object",
        "properties": {**shared, **properties},
        "required": list(required),
        "additionalProperties": False,
    }


def expression(description: str) -> JsonObject:
    return {"type": "string", "maxLength": MAX_EXPRESSION_CHARACTERS, "description": description}


def output_schema() -> JsonObject:
    """What a finished run answers with. A run that timed out or broke its container's rules is an error instead."""
    return _closed(
        {
            "run_id": _TEXT,
            "passed": {
                "type": "boolean",
                "description": "The exit code is 0, and a readable report tells of no failure",
            },
            "exit_code": {"type": "integer", "description": "The container engine's word"},
            "seconds": {"type": "number"},
            "counts": {
                "anyOf": [_closed(dict.fromkeys(COUNTS, _COUNT)), {"type": "null"}],
                "description": "The job's own word; null when it left no readable report",
            },
            "failures": {"type": "array", "items": _closed({"test": _TEXT, "message": _TEXT})},
            "failures_left_out": _COUNT,
            "output": {"type": "string", "description": "The last lines; all of it is in job.log"},
            "output_cut": {"type": "boolean"},
            "artifacts_complete": {"type": "boolean"},
            "artifacts": {
                "type": "array",
                "items": _closed({"path": _TEXT, "size": _COUNT, "sha256": _TEXT, "mime": _TEXT}),
            },
            "artifacts_left_out": _COUNT,
            "refused_artifacts": _COUNT,
            "evidence_sha256": _TEXT,
        }
    )


COUNTS = ("passed", "failed", "errors", "skipped", "timed_out", "flaky")


def _closed(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
