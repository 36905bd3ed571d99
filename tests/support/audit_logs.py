"""Audit logs for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.audit.signing import PublicKey
from browser_shell.audit.verify import Verdict, verify_log
from browser_shell.core.records import AuditRecord, RecordKind
from support.fakes import FakeClock

HOSTILE = '<script src="//evil.example/x.js">"\'&\x1b[2J'
OWN_KINDS = {"AUDIT_OPENED", "AUDIT_CLOSED", "AUDIT_RESUMED", "CHECKPOINT"}


def a_record(kind: RecordKind = RecordKind.MCP_TOOL_CALL, call_id: str = "c1") -> AuditRecord:
    return AuditRecord(kind=kind, call_id=call_id, subject="local", tool="browser-shell", exit_code=0)


def raw_lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def entries(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in raw_lines(path)]


def call_ids(path: Path) -> list[object]:
    """Call ids of all records except those that the log writes about itself."""
    return [entry["call_id"] for entry in entries(path) if entry["kind"] not in OWN_KINDS]


def checked(path: Path, *, checkpoints: Sequence[bytes] = ()) -> Verdict:
    return verify_log(path, key=PublicKey.read(path.with_suffix(".pub")), checkpoints=checkpoints)


def a_writer(path: Path, **options: float) -> JsonLinesAudit:
    return JsonLinesAudit(path=path, clock=FakeClock(), **options)  # type: ignore[arg-type] # whole numbers are floats


async def a_log(directory: Path, *, records: int = 20, checkpoint_records: int = 6) -> Path:
    """A closed log with several checkpoints."""
    path = directory / "audit.jsonl"
    with a_writer(path, checkpoint_records=checkpoint_records) as audit:
        for number in range(records):
            await audit.record(a_record(call_id=f"c{number}"))
    return path


async def a_busy_log(directory: Path) -> Path:
    """A log with several subjects and sessions, refusals, failures, and a hostile subject."""
    path, clock = directory / "audit.jsonl", FakeClock()
    with JsonLinesAudit(path=path, clock=clock, checkpoint_records=5) as audit:
        for number, (subject, error, rule) in enumerate(
            [("ann", "", ""), ("bob", "POLICY_BLOCKED", "address.private"), ("ann", "TIMEOUT", ""), (HOSTILE, "", "")]
            * 5
        ):
            call = AuditRecord(
                kind=RecordKind.MCP_TOOL_CALL,
                call_id=f"c{number}",
                subject=subject,
                tool="browser-shell",
                session_id=f"{subject}-1",
            )
            await audit.record(call)
            if rule:
                await audit.record(replace(call, kind=RecordKind.POLICY_BLOCKED, rule_id=rule, error=error))
            clock.advance(7)
            end = replace(call, kind=RecordKind.TOOL_FINISHED, error=error, duration_ms=3.5 * (number + 1))
            await audit.record(end)
    return path
