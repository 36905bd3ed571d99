from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.audit.query import read_entries
from browser_shell.audit.report import percentile, summarise
from browser_shell.core.records import RecordKind
from support.audit_logs import a_busy_log, a_record, a_writer


async def test_calls_are_counted_by_session_and_outcome(tmp_path: Path) -> None:
    summary = summarise(read_entries(await a_busy_log(tmp_path)))
    assert len(summary.calls) == 20
    assert summary.sessions["ann", "ann-1"].outcomes == {"ok": 5, "failed": 5}
    assert summary.sessions["bob", "bob-1"].outcomes == {"refused": 5}
    assert summary.refusals == {"address.private": 5}


async def test_steps_are_counted_like_calls_and_steps_that_did_not_run_as_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    finished = replace(a_record(RecordKind.TOOL_FINISHED), error="", step=1, duration_ms=5.0)
    with a_writer(path) as audit:
        await audit.record(finished)
        await audit.record(replace(finished, step=2, error="ELEMENT_GONE"))
        await audit.record(replace(finished, step=3, error="NOT_RUN", duration_ms=None))
    (session,) = summarise(read_entries(path)).sessions.values()
    assert session.outcomes == {"ok": 1, "failed": 1, "refused": 1}
    assert [entry.number("step") for entry in read_entries(path) if entry.text("kind") == "TOOL_FINISHED"] == [1, 2, 3]


async def test_suppressed_refusals_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    refused = replace(a_record(RecordKind.MCP_NETWORK_BLOCKED), rule_id="address.private")
    with a_writer(path) as audit:
        await audit.record(refused)
        await audit.record(replace(refused, suppressed_records=40))
    assert summarise(read_entries(path)).refusals == {"address.private": 41}


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 3.0), (0.95, 4.0), (1.0, 4.0)])
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == expected


def test_the_percentile_of_no_values_is_zero() -> None:
    assert percentile([], 0.5) == 0.0
