"""The evidence of one run: a document with the hash of every file and the audit record of the run's start."""

from __future__ import annotations

import errno
import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from browser_shell.core.containers import ContainerReport
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.records import Receipt
from browser_shell.jobs.output_files import UNLISTED_REASON, Collected, OutputFile
from browser_shell.jobs.test_report import JobReport
from browser_shell.process.files import replace_file

FORMAT = "browser-shell evidence 1"
EVIDENCE_NAME = "evidence.json"
LOG_NAME = "job.log"
OUTPUT_NAME = "output"
MAX_EVIDENCE_BYTES = 16 * 1024 * 1024
"""`evidence verify` reads no more. Paths take at most half of it (`MAX_LISTED_BYTES`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts known before a run starts. Stored as run.json, in case the server dies during the run.

    The defaults are for a run whose run.json was lost too.
    """

    run_id: str
    start_time: str
    subject: str = ""
    tool: str = ""
    parameters: JsonObject = field(default_factory=dict)
    image: str = ""
    limits: JsonObject = field(default_factory=dict)
    policy_digest: str = ""

    def as_json(self) -> JsonObject:
        values = plain(asdict(self))
        values["began"] = values.pop("start_time")
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended. `end` is a ContainerEnd, an error code, or the reason why the end is unknown."""

    end: str
    complete: bool
    ended: str
    report: ContainerReport | None = None
    tests: JobReport | None = None
    receipt: Receipt | None = None
    """Receipt of the audit record that announced the program's start; None when it never started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEvidence:
    """The hash and size that the audit log records."""

    sha256: str
    size: int

    @classmethod
    def of(cls, content: bytes) -> WrittenEvidence:
        return cls(sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def compose(facts: RunFacts, end: RunEnd, collected: Collected, log: OutputFile | None) -> JsonObject:
    """Return the document. Everything under `files` was read back from the disk."""
    report = end.report
    refused: list[JsonValue] = [{"path": entry.path, "reason": entry.reason} for entry in collected.refused]
    if report is not None:
        refused += [{"path": entry.path, "reason": entry.reason.value} for entry in report.refused]
    return {
        "format": FORMAT,
        **facts.as_json(),
        "complete": end.complete,
        "audit": plain(asdict(end.receipt)) if end.receipt is not None else None,
        "ended": end.ended,
        "seconds": plain(asdict(report.timings)) if report is not None else None,
        "outcome": _outcome(end),
        "log": {**plain(asdict(log)), "cut": report.log_cut if report else True} if log is not None else None,
        "files": [plain(asdict(file)) for file in collected.files],
        "files_cut": collected.cut,
        "empty_directories": list(collected.empty_directories),
        "unlisted": {"count": collected.unlisted, "reason": UNLISTED_REASON} if collected.unlisted else None,
        "refused": refused,
        "refused_count": collected.refused_count + (report.refused_count if report else 0),
    }


def write_evidence(run_directory: Path, document: JsonObject) -> WrittenEvidence:
    """Write atomically and durably. Raises: OSError, also when the document is too large to be verified."""
    content = encode(document)
    if len(content) > MAX_EVIDENCE_BYTES:
        raise OSError(errno.EFBIG, f"it would have {len(content)} bytes, and verify reads {MAX_EVIDENCE_BYTES}")
    replace_file(run_directory / EVIDENCE_NAME, content)
    return WrittenEvidence.of(content)


def encode(document: JsonObject) -> bytes:
    return json.dumps(document, indent=1, ensure_ascii=True, sort_keys=True).encode("ascii") + b"\n"


def _outcome(end: RunEnd) -> JsonObject:
    report = end.report
    counts = plain(asdict(end.tests)) if end.tests is not None else None
    if counts is not None:
        del counts["failures"], counts["failures_left_out"]
    return {
        "end": end.end,
        "exit_code": report.exit_code if report is not None else None,
        "container_id": report.container_id if report is not None else "",
        "output_complete": report.output_complete if report is not None else False,
        # Untrusted: the job writes its own report.
        "counts_by_the_job_itself": counts,
    }


def plain(values: dict[str, object]) -> JsonObject:
    """Convert to JSON types: tuples become lists; other types raise TypeError."""
    converted: JsonObject = json.loads(json.dumps(values))
    return converted
