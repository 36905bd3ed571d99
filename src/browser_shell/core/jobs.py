"""The test report of a job. The job writes it, so it is untrusted; exit code and end come from the engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """One test that did not pass."""

    test: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """Counts by outcome, and the first failures."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    timed_out: int = 0
    flaky: int = 0
    failures: tuple[FailedTest, ...] = ()
    failures_left_out: int = 0

    @property
    def has_no_failures(self) -> bool:
        return not (self.failed or self.errors or self.timed_out)
