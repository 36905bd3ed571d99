"""What a caller is told of a run: nothing that nobody can see has passed."""

from __future__ import annotations

import pytest

from browser_shell.core.containers import ContainerEnd, ContainerReport, ContainerTimings
from browser_shell.core.jobs import JobReport
from browser_shell.core.json_values import JsonObject
from browser_shell.jobs.answer import answer
from browser_shell.jobs.evidence import WrittenEvidence
from browser_shell.jobs.output_files import Collected
from browser_shell.jobs.output_tail import OutputTail
from support.job_plans import RUN, a_job


def told(*, tests: JobReport | None, complete: bool = True, exit_code: int = 0) -> JsonObject:
    report = ContainerReport(
        container_id="c",
        image_id="sha256:0",
        end=ContainerEnd.EXITED,
        exit_code=exit_code,
        log_size=0,
        log_cut=False,
        timings=ContainerTimings(created=0, started=0, first_output=None, ended=1, removed=1),
        output_complete=complete,
    )
    return answer(
        run_id=RUN,
        plan=a_job(),
        report=report,
        tests=tests,
        output=OutputTail(),
        collected=Collected(),
        evidence=WrittenEvidence(sha256="0" * 64, size=1),
    )


def test_a_run_that_reported_well_and_ended_with_zero_has_passed() -> None:
    assert told(tests=JobReport(passed=1))["passed"] is True


@pytest.mark.promise("jobs:a-report-cannot-forge-success")
@pytest.mark.parametrize(
    "doubt", [{"tests": None}, {"tests": JobReport(passed=1), "complete": False}, {"tests": JobReport(failed=1)}]
)
def test_what_cannot_be_seen_has_not_passed(doubt: dict[str, object]) -> None:
    assert told(**doubt)["passed"] is False  # type: ignore[arg-type]  # rows of keyword arguments


def test_a_run_whose_output_did_not_arrive_says_so() -> None:
    assert told(tests=JobReport(passed=1), complete=False)["artifacts_complete"] is False
