"""What a caller is told of a run. The exit code and the end are the engine's; the counts are the job's own word."""

from __future__ import annotations

from dataclasses import asdict
from typing import assert_never

from browser_shell.core.containers import ContainerEnd, ContainerLimits, ContainerReport
from browser_shell.core.errors import ErrorCode
from browser_shell.core.jobs import JobReport
from browser_shell.core.json_values import JsonObject
from browser_shell.core.plans import ContainerJob
from browser_shell.core.results import CommandResult
from browser_shell.jobs.evidence import WrittenEvidence
from browser_shell.jobs.output_files import Collected
from browser_shell.jobs.output_tail import OutputTail

MAX_ARTIFACTS = 100
MAX_FAILURES = 20
MIB = 1024 * 1024
_COUNTS = ("passed", "failed", "errors", "skipped", "timed_out", "flaky")


def answer(
    *,
    run_id: str,
    plan: ContainerJob,
    report: ContainerReport,
    tests: JobReport | None,
    output: OutputTail,
    collected: Collected,
    evidence: WrittenEvidence,
) -> JsonObject:
    failures = tests.failures[:MAX_FAILURES] if tests else ()
    left_out = (tests.failures_left_out + len(tests.failures) - len(failures)) if tests else 0
    text = output.last_lines(plan.output_lines)
    return {
        "run_id": run_id,
        # A job can make its result worse than its exit code, and never better. What nobody can see did not pass.
        "passed": report.exit_code == 0 and report.output_complete and tests is not None and tests.all_well,
        "exit_code": report.exit_code,
        "seconds": round(report.timings.ended - report.timings.started, 3),
        "counts": {name: getattr(tests, name) for name in _COUNTS} if tests else None,
        "failures": [{"test": failure.test, "message": failure.message} for failure in failures],
        "failures_left_out": left_out,
        "output": text,
        "output_cut": report.log_cut or output.is_cut(text),
        "artifacts_complete": report.output_complete,
        "artifacts": [asdict(file) for file in collected.files[:MAX_ARTIFACTS]],
        "artifacts_left_out": max(0, len(collected.files) - MAX_ARTIFACTS),
        "refused_artifacts": len(collected.refused) + collected.unlisted + report.refused_count,
        "evidence_sha256": evidence.sha256,
    }


def broken_rule(report: ContainerReport, limits: ContainerLimits, run_id: str) -> CommandResult | None:
    """The error of a run that was ended, or that filled its box; None for one that ended by itself."""
    mib = limits.memory_bytes // MIB
    match report.end:
        case ContainerEnd.EXITED:
            return None
        case ContainerEnd.TIMED_OUT:
            what = f"the job was not finished within {limits.timeout_seconds} s and was killed with all its processes"
            broken = ErrorCode.TIMEOUT, "sandbox.timeout_seconds", what
        case ContainerEnd.OUT_OF_MEMORY:
            what = f"the job needed more than its {mib} MiB of memory and was killed"
            broken = ErrorCode.SANDBOX_VIOLATION, "sandbox.memory_mib", what
        case ContainerEnd.OUTPUT_FULL:
            what = f"the job filled its /output ({limits.output_bytes // MIB} MiB, {limits.output_entries} entries)"
            broken = ErrorCode.SANDBOX_VIOLATION, "sandbox.output", what
        case never:
            assert_never(never)
    code, rule, what = broken
    return CommandResult(
        exit_code=code.exit_code,
        error=code,
        rule_id=rule,
        message=f"{what}. What it left behind is kept as run {run_id}",
        run_id=run_id,
    )
