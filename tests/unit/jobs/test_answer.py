"""The tool's answer: a run without complete, positive proof has not passed."""

from __future__ import annotations

import pytest

from browser_shell.core.json_values import JsonObject
from browser_shell.jobs.answer import answer
from browser_shell.jobs.evidence import WrittenEvidence
from browser_shell.jobs.output_files import Collected
from browser_shell.jobs.output_tail import OutputTail
from browser_shell.jobs.run_closing import ClosedRun
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
        closed=ClosedRun(collected=Collected(), evidence=WrittenEvidence(sha256="0" * 64, size=1)),
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
