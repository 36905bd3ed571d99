"""Keeps a job's answer small and still inside its output schema: what is cut is counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from browser_shell.core.calls import ToolCall
from browser_shell.core.json_values import JsonObject, JsonValue, compact_json
from browser_shell.core.plans import ContainerJob
from browser_shell.core.results import CommandResult


@dataclass(frozen=True, slots=True)
class _Room:
    artifacts: int
    failures: int
    message_characters: int
    output_characters: int


_ROOMS = (_Room(30, 10, 1000, 8000), _Room(15, 5, 500, 3000), _Room(5, 2, 200, 800), _Room(0, 0, 0, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundJobAnswer:
    """Tries ever smaller rooms. All of it stays in the run's directory."""

    max_characters: int = 30_000

    async def after(self, call: ToolCall, plan: ContainerJob, result: CommandResult) -> CommandResult:
        data = result.data
        for room in _ROOMS:
            if not isinstance(data, dict) or len(compact_json(data)) <= self.max_characters:
                break
            data = _fit(data, room)
        return replace(result, data=data, message=result.message[:4000])


def _fit(data: JsonObject, room: _Room) -> JsonObject:
    failures, failures_gone = _head(data.get("failures"), room.failures)
    artifacts, artifacts_gone = _head(data.get("artifacts"), room.artifacts)
    output = data.get("output")
    kept = output[len(output) - room.output_characters :] if isinstance(output, str) and room.output_characters else ""
    shorter = isinstance(output, str) and len(output) > room.output_characters
    return {
        **data,
        "failures": [_cut_message(failure, room.message_characters) for failure in failures],
        "failures_left_out": _added(data.get("failures_left_out"), failures_gone),
        "artifacts": artifacts,
        "artifacts_left_out": _added(data.get("artifacts_left_out"), artifacts_gone),
        "output": kept if shorter else output,
        "output_cut": shorter or data.get("output_cut"),
    }


def _head(value: JsonValue, count: int) -> tuple[list[JsonValue], int]:
    items = value if isinstance(value, list) else []
    return items[:count], max(0, len(items) - count)


def _cut_message(failure: JsonValue, characters: int) -> JsonValue:
    if not isinstance(failure, dict):
        return failure
    message = failure.get("message")
    return {**failure, "message": message[:characters] if isinstance(message, str) else ""}


def _added(before: JsonValue, more: int) -> int:
    return (before if isinstance(before, int) else 0) + more
