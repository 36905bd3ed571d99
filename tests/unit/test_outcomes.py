"""stdout and stderr of calls with one step and with several."""

from __future__ import annotations

import json

import pytest

from browser_shell.core.calls import Attachment, CommandResult, ToolOutcome
from browser_shell.core.errors import ActFailed, ErrorCode, TryLater
from browser_shell.outcomes import StepReport, failed_result, outcome_of_call, outcome_of_steps
from support.fakes import a_call

GONE = failed_result(ActFailed(ErrorCode.ELEMENT_GONE, "@e3 is gone", advice="Look again."))


def ok(data: object = None, message: str = "", *attachments: Attachment) -> CommandResult:
    return CommandResult(exit_code=0, data=data, message=message, attachments=attachments)  # type: ignore[arg-type]


def outcome(*steps: tuple[str, CommandResult | None], executed: bool = True, limit: int = 30_000) -> ToolOutcome:
    reports = [StepReport(name=name, result=result) for name, result in steps]
    return outcome_of_steps(a_call(), reports, was_executed=executed, max_characters=limit)


def test_one_step_has_its_data_as_stdout() -> None:
    alone = outcome_of_call(a_call(), None, ok({"a": 1}, "NOTE: x"))
    assert (alone.stdout, alone.stderr) == ('{"a":1}\n', "NOTE: x")


def test_all_steps_have_an_array_as_stdout() -> None:
    every = outcome(("open", ok({"url": "u"})), ("snapshot", ok("tree")), ("close", ok()))
    assert (every.exit_code, every.error, every.stdout, every.stderr) == (0, None, '[{"url":"u"},"tree",null]\n', "")


def test_stderr_names_the_step_that_stopped_and_those_that_did_not_run() -> None:
    stopped = outcome(("open", ok({"n": 1})), ("click", GONE), ("fill", None), ("press", None))
    assert (stopped.exit_code, stopped.error, stopped.stdout) == (1, ErrorCode.ELEMENT_GONE, '[{"n":1}]\n')
    assert stopped.stderr == "ELEMENT_GONE: step 2 of 4 (click): @e3 is gone; 2 steps did not run\nLook again."


@pytest.mark.parametrize(("left", "words"), [(0, "gone\n"), (1, "gone; 1 step did not run\n")])
def test_the_number_of_steps_that_did_not_run_is_in_plain_english(left: int, words: str) -> None:
    stopped = outcome(("open", ok()), ("click", GONE), *[("fill", None)] * left)
    assert words in stopped.stderr


def test_the_rule_and_the_time_to_wait_are_those_of_the_step_that_stopped() -> None:
    later = failed_result(TryLater("no room", rule_id="sessions.max", retry_after_seconds=5))
    stopped = outcome(("open", later), ("back", None))
    assert (stopped.exit_code, stopped.rule_id, stopped.retry_after_seconds) == (75, "sessions.max", 5)
    assert stopped.stderr.startswith("SESSION_LIMIT: step 1 of 2 (open): no room (rule sessions.max); 1 step did not")
    assert stopped.stdout == "[]\n"


def test_a_call_of_which_nothing_ran_has_no_stdout() -> None:
    assert outcome(("open", None), ("click", GONE), executed=False).stdout == ""


def test_notes_name_their_step_and_advice_is_the_last_line() -> None:
    failed = CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED, message="no\nNOTE: a new tab t2", advice="Do.")
    stopped = outcome(("click", ok({}, "NOTE: an alert\nNOTE: again")), ("hover", failed), ("back", None))
    assert stopped.stderr.split("\n") == [
        "COMMAND_FAILED: step 2 of 3 (hover): no; 1 step did not run",
        "NOTE: step 1 (click): an alert",
        "NOTE: step 1 (click): again",
        "NOTE: step 2 (hover): a new tab t2",
        "Do.",
    ]


def test_secrets_in_notes_and_reasons_are_redacted() -> None:
    failed = CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED, message="at https://u:s3cret@a.example/")
    stopped = outcome(("open", ok({}, "NOTE: https://u:s3cret@a.example/")), ("click", failed))
    assert "s3cret" not in stopped.stderr


def test_stdout_and_notes_of_all_steps_are_limited() -> None:
    large = outcome(*[("snapshot", ok("x" * 900, "NOTE: " + "y" * 900))] * 13, limit=5_000)
    assert len(large.stdout) <= 5_000
    assert len(large.stderr) <= 4_200
    assert isinstance(json.loads(large.stdout), list)


def test_a_shortened_answer_has_a_note() -> None:
    assert "OUTPUT_TRUNCATED" in outcome(*[("snapshot", ok("x" * 900))] * 3, limit=1_000).stderr


def test_attachments_of_all_steps_are_kept_in_order() -> None:
    pictures = [Attachment(mime_type="image/png", content=b"", name=name) for name in ("a.png", "b.png")]
    both = outcome(("screenshot", ok({}, "", pictures[0])), ("screenshot", ok({}, "", pictures[1])), ("click", GONE))
    assert both.attachments == tuple(pictures)


def test_a_lone_surrogate_is_replaced() -> None:
    assert json.loads(outcome(("get", ok("a\ud800b")), ("get", ok())).stdout.encode())[0] == "a\ufffdb"
