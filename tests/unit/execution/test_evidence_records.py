"""Which of several records of a run's evidence counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.evidence_log import read_log
from browser_shell.testing.fakes import FakeClock
from support.job_plans import RUN


async def test_evidence_that_was_recorded_cannot_be_replaced_by_a_later_record(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    first = AuditRecord(
        kind=RecordKind.MCP_FILE_WRITE,
        call_id=RUN,
        subject="ann",
        tool="run_pytest",
        run_id=RUN,
        path="evidence.json",
        sha256="a" * 64,
    )
    with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
        await audit.record(first)
        await audit.record(replace(first, sha256="b" * 64))
    facts = read_log(path, None)
    assert facts.problems == []
    assert facts.evidence[RUN].word("sha256") == "a" * 64
