"""The last lines of a job's output, and the tool's answer about a run.

Exit code and end come from the engine. The counts come from the job's own report.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import assert_never

from browser_shell.core.calls import CommandResult, ContainerJob
from browser_shell.core.containers import MIB, ContainerEnd, ContainerLimits, ContainerReport
from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject
from browser_shell.jobs.evidence import ClosedRun
from browser_shell.jobs.test_report import JobReport, plain_line
from browser_shell.policy.jobs import MAX_OUTPUT_LINES

MAX_ARTIFACTS = 100
MAX_FAILURES = 20
MAX_LINE_CHARACTERS = 500
MAX_CHARACTERS = 16_000
_KEPT_BYTES = 64 * 1024
_COUNTS = ("passed", "failed", "errors", "skipped", "timed_out", "flaky")


class OutputTail:
    """The last lines of a job's output. Keeps at most 64 KiB, however much the job writes."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self.total_bytes = 0

    def add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        self._pieces.append(data[-_KEPT_BYTES:])
        self._size += len(self._pieces[-1])
        while self._size - len(self._pieces[0]) >= _KEPT_BYTES:
            self._size -= len(self._pieces.popleft())

    def last_line(self) -> str:
        return next((line for line in reversed(self._lines()) if line.strip()), "")

    def last_lines(self, count: int) -> str:
        kept: list[str] = []
        room = MAX_CHARACTERS
        for line in reversed(self._lines()[-min(count, MAX_OUTPUT_LINES) :] if count else []):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept))

    def is_cut(self, text: str) -> bool:
        """Whether the job wrote more than `text`."""
        return self.total_bytes > len(text.encode()) + 1

    def _lines(self) -> list[str]:
        text = b"".join(self._pieces)[-_KEPT_BYTES:].decode("utf-8", "replace")
        return [_shorten(plain_line(line)) for line in text.rstrip("\n").split("\n")]


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]}…"


def answer(
    *,
    run_id: str,
    plan: ContainerJob,
    report: ContainerReport,
    tests: JobReport | None,
    output: OutputTail,
    closed: ClosedRun,
) -> JsonObject:
    failures = tests.failures[:MAX_FAILURES] if tests else ()
    files = closed.collected.files
    text = output.last_lines(plan.output_lines)
    return {
        "run_id": run_id,
        # The job's report can only make the result worse than the exit code. A missing report is no pass.
        "passed": report.exit_code == 0 and report.output_complete and tests is not None and tests.has_no_failures,
        "exit_code": report.exit_code,
        "seconds": round(report.timings.ended - report.timings.started, 3),
        "counts": {name: getattr(tests, name) for name in _COUNTS} if tests else None,
        "failures": [{"test": failure.test, "message": failure.message} for failure in failures],
        "failures_left_out": tests.failures_left_out + len(tests.failures) - len(failures) if tests else 0,
        "output": text,
        "output_cut": report.log_cut or output.is_cut(text),
        "artifacts_complete": report.output_complete,
        "artifacts": [asdict(file) for file in files[:MAX_ARTIFACTS]],
        "artifacts_left_out": max(0, len(files) - MAX_ARTIFACTS),
        "refused_artifacts": closed.collected.refused_count + report.refused_count,
        "evidence_sha256": closed.evidence_sha256,
    }


def limit_error(report: ContainerReport, limits: ContainerLimits, run_id: str) -> CommandResult | None:
    """Return the error of a run that reached a limit; None for a run that ended by itself."""
    match report.end:
        case ContainerEnd.EXITED:
            return None
        case ContainerEnd.TIMED_OUT:
            code, rule = ErrorCode.TIMEOUT, "sandbox.timeout_seconds"
            what = f"the job was not finished within {limits.timeout_seconds} s and was killed with all its processes"
        case ContainerEnd.OUT_OF_MEMORY:
            code, rule = ErrorCode.SANDBOX_VIOLATION, "sandbox.memory_mib"
            what = f"the job needed more than its {limits.memory_bytes // MIB} MiB of memory and was killed"
        case ContainerEnd.OUTPUT_FULL:
            code, rule = ErrorCode.SANDBOX_VIOLATION, "sandbox.output"
            what = f"the job filled its /output ({limits.output_bytes // MIB} MiB, {limits.output_entries} entries)"
        case never:
            assert_never(never)
    return CommandResult(
        exit_code=code.exit_code,
        error=code,
        rule_id=rule,
        message=f"{what}. Its output and evidence are kept as run {run_id}",
        run_id=run_id,
    )
