"""The tool's answer: without complete, positive proof a run has not passed, and its output is bounded."""

from __future__ import annotations

import pytest

from browser_shell.core.json_values import JsonObject
from browser_shell.jobs.answer import MAX_CHARACTERS, MAX_LINE_CHARACTERS, OutputTail, answer
from browser_shell.jobs.evidence import ClosedRun
from browser_shell.jobs.output_files import Collected
from browser_shell.jobs.test_report import JobReport
from support.fake_engine import container_report
from support.job_plans import RUN, a_job


def an_answer(*, tests: JobReport | None, output_complete: bool = True) -> JsonObject:
    return answer(
        run_id=RUN,
        plan=a_job(),
        report=container_report(output_complete=output_complete),
        tests=tests,
        output=OutputTail(),
        closed=ClosedRun(collected=Collected(), evidence_sha256="0" * 64),
    )


def test_a_run_with_exit_code_0_and_a_good_report_has_passed() -> None:
    assert an_answer(tests=JobReport(passed=1))["passed"] is True


@pytest.mark.promise("jobs:a-report-cannot-forge-success")
@pytest.mark.parametrize(
    ("tests", "output_complete"), [(None, True), (JobReport(passed=1), False), (JobReport(failed=1), True)]
)
def test_a_missing_or_bad_report_or_incomplete_output_has_not_passed(
    tests: JobReport | None, output_complete: bool
) -> None:
    assert an_answer(tests=tests, output_complete=output_complete)["passed"] is False


def test_incomplete_output_is_reported() -> None:
    assert an_answer(tests=JobReport(passed=1), output_complete=False)["artifacts_complete"] is False


def test_the_last_lines_are_returned_and_the_cut_is_reported() -> None:
    tail = OutputTail()
    for piece in (b"first\nsec", b"ond\n", b"third\n"):
        tail.add(piece)
    assert tail.last_lines(2) == "second\nthird"
    assert tail.last_line() == "third"
    assert tail.last_lines(0) == ""
    assert tail.is_cut("second\nthird")
    assert not tail.is_cut("first\nsecond\nthird")


def test_a_flood_is_bounded() -> None:
    tail = OutputTail()
    for _ in range(1000):
        tail.add(b"x" * 10_000 + b"\n")
    tail.add(b"end")
    assert tail.last_line() == "end"
    assert len(tail.last_lines(100_000)) <= MAX_CHARACTERS
    assert len(b"".join(tail._pieces)) < 80 * 1024
    assert all(len(line) <= MAX_LINE_CHARACTERS + 1 for line in tail.last_lines(100).splitlines())
