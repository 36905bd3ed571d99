"""Outcomes for clients: exit code, stdout and stderr of a call with one step or with several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from browser_shell.core.calls import CommandResult, Plan, ToolCall, ToolOutcome
from browser_shell.core.errors import BrowserShellError, TryLater
from browser_shell.core.json_values import JsonValue, compact_json
from browser_shell.core.ports import Tool
from browser_shell.hooks.redact import redact_text
from browser_shell.hooks.truncate import cut_text, truncate

MAX_REASON_CHARACTERS = 6_000
MAX_NOTES_CHARACTERS = 4_000
"""Limit of the notes of all steps of a call."""
_NOTE = "NOTE: "


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """How one step of a call ended. `result` is None for a step that did not run."""

    name: str
    result: CommandResult | None


def failed_result(error: BrowserShellError) -> CommandResult:
    return CommandResult(
        exit_code=error.code.exit_code,
        message=error.public_message,
        error=error.code,
        advice=error.advice,
        rule_id=error.rule_id,
        retry_after_seconds=error.retry_after_seconds if isinstance(error, TryLater) else None,
    )


def outcome_of_call(call: ToolCall, tool: Tool[Plan] | None, result: CommandResult) -> ToolOutcome:
    """Return the outcome of a call with one step."""
    uses_protocol_errors = tool is not None and tool.uses_protocol_errors
    # A tool with protocol errors returns data of its own output schema, not session_id, exit_code, stdout and stderr.
    answer = result.data if uses_protocol_errors and isinstance(result.data, dict) else None
    return ToolOutcome(
        session_id=call.session_id,
        exit_code=result.exit_code,
        stdout="" if result.error is not None and result.data is None else _json_line(result.data),
        stderr=_stderr(result),
        error=result.error,
        rule_id=result.rule_id,
        retry_after_seconds=result.retry_after_seconds,
        attachments=result.attachments,
        answer=answer,
        uses_protocol_errors=uses_protocol_errors,
        run_id=result.run_id,
    )


def outcome_of_steps(
    call: ToolCall, steps: Sequence[StepReport], *, was_executed: bool, max_characters: int
) -> ToolOutcome:
    """Return the outcome of a call with several steps, of which at most one has an error: the one that stopped it."""
    ran = [step.result for step in steps if step.result is not None]
    # Without an error every step ran, so the last one stands for the call.
    stopped_at = next((index for index, step in enumerate(steps) if step.result and step.result.error), None)
    end = ran[-1]
    data: list[JsonValue] = [result.data for result in ran if result.error is None or result.data is not None]
    shortened = truncate(data, max_characters - 1)
    notes = [note for number, step in enumerate(steps, start=1) for note in _notes_of_step(number, step)]
    if shortened is not data:
        notes.append("OUTPUT_TRUNCATED: the steps returned too much for one call. Use fewer looks in one call.")
    note_text = cut_text("\n".join(notes), MAX_NOTES_CHARACTERS)
    return ToolOutcome(
        session_id=call.session_id,
        exit_code=end.exit_code,
        stdout=_json_line(shortened) if was_executed else "",
        stderr=note_text if stopped_at is None else _stderr_of_steps(steps, stopped_at, end, note_text),
        error=end.error,
        rule_id=end.rule_id,
        retry_after_seconds=end.retry_after_seconds,
        attachments=tuple(attachment for result in ran for attachment in result.attachments),
    )


def _stderr_of_steps(steps: Sequence[StepReport], stopped_at: int, end: CommandResult, notes: str) -> str:
    reason, _ = _split_notes(end)
    left = len(steps) - stopped_at - 1
    not_run = f"; {left} step{'' if left == 1 else 's'} did not run" if left else ""
    name = f" ({steps[stopped_at].name})" if steps[stopped_at].name else ""
    place = f"step {stopped_at + 1} of {len(steps)}{name}: "
    code = f"{end.error.name}: " if end.error else ""
    rule = f" (rule {end.rule_id})" if end.rule_id else ""
    advice = end.advice or (end.error.advice if end.error else "")
    lines = (f"{code}{place}{_cut_reason(reason)}{rule}{not_run}", notes, advice)
    return "\n".join(line for line in lines if line)


def _notes_of_step(number: int, step: StepReport) -> Iterator[str]:
    if step.result is not None:
        for line in filter(None, _split_notes(step.result)[1].split("\n")):
            is_note = line.startswith(_NOTE)
            yield f"{_NOTE}step {number} ({step.name}): {line.removeprefix(_NOTE)}" if is_note else line


def _split_notes(result: CommandResult) -> tuple[str, str]:
    """Return the reason of a failed result, and its notes. The message of a success consists of notes."""
    message = _valid_unicode(redact_text(result.message))
    if result.error is None:
        return "", message
    reason, line_end, notes = message.partition(f"\n{_NOTE}")
    return reason, f"{_NOTE}{notes}" if line_end else ""


def _stderr(result: CommandResult) -> str:
    # Raised errors bypass the after-hooks, so their messages are redacted and shortened here.
    message = _valid_unicode(redact_text(result.message))
    if result.error is None:
        return message
    rule = f" (rule {result.rule_id})" if result.rule_id else ""
    return f"{result.error.name}: {_cut_reason(message)}{rule}\n{result.advice or result.error.advice}"


def _cut_reason(text: str) -> str:
    if len(text) <= MAX_REASON_CHARACTERS:
        return text
    return f"{text[:MAX_REASON_CHARACTERS]}…[{len(text) - MAX_REASON_CHARACTERS} characters cut]"


def _json_line(data: JsonValue) -> str:
    return _valid_unicode(compact_json(data)) + "\n"


def _valid_unicode(text: str) -> str:
    """Replace lone surrogates. Pages may contain them, and UTF-8 cannot encode them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
