"""The evidence of one run: a document that names every file by its hash and the audit record that announced the run."""

from __future__ import annotations

import errno
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from browser_shell.core.containers import ContainerLimits, ContainerReport
from browser_shell.core.jobs import JobReport
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.plans import ContainerJob
from browser_shell.core.records import Receipt, utc_timestamp
from browser_shell.jobs.output_files import UNLISTED_REASON, Collected, OutputFile
from browser_shell.process.atomic_file import replace_file

FORMAT = "browser-shell evidence 1"
EVIDENCE_NAME = "evidence.json"
LOG_NAME = "job.log"
OUTPUT_NAME = "output"
MAX_EVIDENCE_BYTES = 16 * 1024 * 1024
"""`verify` reads no more. Half of it is for paths (`MAX_LISTED_BYTES`), the rest for what is said of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of a run before it begins. Written down then, in case this server does not see its end."""

    run_id: str
    subject: str
    tool: str
    parameters: JsonObject
    image: str
    limits: JsonObject
    policy_digest: str
    began: str

    @classmethod
    def of(
        cls,
        *,
        run_id: str,
        subject: str,
        plan: ContainerJob,
        image: str,
        limits: ContainerLimits,
        policy_digest: str,
        began: float,
    ) -> RunFacts:
        return cls(
            run_id=run_id,
            subject=subject,
            tool=plan.name,
            parameters=parameters_of(plan),
            image=image,
            limits=_plain(asdict(limits)),
            policy_digest=policy_digest,
            began=utc_timestamp(began),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How it ended. `end` is the engine's word, or says why there is none."""

    end: str
    complete: bool
    ended: str
    report: ContainerReport | None = None
    tests: JobReport | None = None
    receipt: Receipt | None = None
    """Of the record that announced the program's start; None when it never started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEvidence:
    """Where it is, and what the audit log is told of it."""

    sha256: str
    size: int


def compose(facts: RunFacts, end: RunEnd, collected: Collected, log: OutputFile | None) -> JsonObject:
    """The document. Everything under `files` was read back from the disk."""
    report = end.report
    refused: list[JsonValue] = [{"path": entry.path, "reason": entry.reason} for entry in collected.refused]
    if report is not None:
        refused += [{"path": entry.path, "reason": entry.reason.value} for entry in report.refused]
    return {
        "format": FORMAT,
        "run_id": facts.run_id,
        "complete": end.complete,
        "subject": facts.subject,
        "tool": facts.tool,
        "parameters": facts.parameters,
        "image": facts.image,
        "limits": facts.limits,
        "policy_digest": facts.policy_digest,
        "audit": _plain(asdict(end.receipt)) if end.receipt is not None else None,
        "began": facts.began,
        "ended": end.ended,
        "seconds": _plain(asdict(report.timings)) if report is not None else None,
        "outcome": _outcome(end),
        "log": {**_plain(asdict(log)), "cut": report.log_cut if report else True} if log is not None else None,
        "files": [_plain(asdict(file)) for file in collected.files],
        "files_cut": collected.cut,
        "empty_directories": list(collected.empty_directories),
        "unlisted": {"count": collected.unlisted, "reason": UNLISTED_REASON} if collected.unlisted else None,
        "refused": refused,
        "refused_count": len(collected.refused) + collected.unlisted + (report.refused_count if report else 0),
    }


def write_evidence(run_directory: Path, document: JsonObject) -> WrittenEvidence:
    """All of it or nothing, and on the disk when it returns. Raises: OSError, also when nobody would read it back."""
    content = as_bytes(document)
    if len(content) > MAX_EVIDENCE_BYTES:
        raise OSError(errno.EFBIG, f"it would have {len(content)} bytes, and verify reads {MAX_EVIDENCE_BYTES}")
    replace_file(run_directory / EVIDENCE_NAME, content)
    return WrittenEvidence(sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def as_bytes(document: JsonObject) -> bytes:
    """As it is written."""
    return json.dumps(document, indent=1, ensure_ascii=True, sort_keys=True).encode("ascii") + b"\n"


def parameters_of(plan: ContainerJob) -> JsonObject:
    return _plain({**asdict(plan), "runner": plan.runner.value})


def _outcome(end: RunEnd) -> JsonObject:
    counts = asdict(end.tests) if end.tests is not None else None
    if counts is not None:
        del counts["failures"], counts["failures_left_out"]
    return {
        "end": end.end,
        "exit_code": end.report.exit_code if end.report is not None else None,
        "container_id": end.report.container_id if end.report is not None else "",
        "output_complete": end.report.output_complete if end.report is not None else False,
        # What a job says about itself is never more than that.
        "counts_by_the_job_itself": _plain(counts) if counts is not None else None,
    }


def _plain(values: dict[str, object]) -> JsonObject:
    """Through JSON, so that tuples are lists and nothing else slips in."""
    plain: JsonObject = json.loads(json.dumps(values))
    return plain
