"""Finishing a run records its evidence as it is, and must not make changed evidence good again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.commands.cli import run
from browser_shell.core.ports import ignore_progress
from support.fakes import FakeClock
from support.job_plans import RUN, JobBench, a_job, a_job_call


@pytest.mark.parametrize("changed", [False, True])
async def test_evidence_that_was_changed_is_not_good_because_it_was_recorded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: bool
) -> None:
    log = tmp_path / "audit.jsonl"
    document = JobBench(tmp_path).document
    with JsonLinesAudit(path=log, clock=FakeClock(), policy_digest=document.digest()) as audit:
        real: Any = audit
        bench = JobBench(tmp_path, audit=real)
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        evidence = bench.run_directory / "evidence.json"
        if changed:
            evidence.write_bytes(evidence.read_bytes().replace(b'"exit_code": 0', b'"exit_code": 1'))
        (bench.run_directory / "run.json").write_text("{}")
        await bench.upkeep().begin()
    assert not (bench.run_directory / "run.json").exists()
    assert log.read_text("utf-8").count('"path":"evidence.json"') == 2
    code = run(["evidence", "verify", RUN, "--artifacts", str(bench.store.root), "--audit", str(log)])
    said = capsys.readouterr().out
    assert code == int(changed), said
    assert ("not the one that the audit log recorded" in said) is changed
