"""However much a job has to say, its answer stays small and inside its schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from browser_shell.core.plans import ContainerJob, JobRunner
from browser_shell.core.results import CommandResult
from browser_shell.hooks.bound_job import BoundJobAnswer
from browser_shell.hooks.standard import job_chain
from browser_shell.tools.job_tools import output_schema
from support.fakes import a_call

PLAN = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=60)


def an_answer(failures: int, artifacts: int, output: str) -> dict[str, Any]:
    return {
        "run_id": "a" * 24,
        "passed": False,
        "exit_code": 1,
        "seconds": 1.5,
        "counts": None,
        "failures": [{"test": "t", "message": "m" * 2000}] * failures,
        "failures_left_out": 1,
        "output": output,
        "output_cut": False,
        "artifacts_complete": True,
        "artifacts": [{"path": "p" * 200, "size": 1, "sha256": "0" * 64, "mime": "text/plain"}] * artifacts,
        "artifacts_left_out": 0,
        "refused_artifacts": 0,
        "evidence_sha256": "0" * 64,
    }


@pytest.mark.parametrize("most", [1000, 5000, 30_000])
async def test_an_answer_is_cut_and_what_is_cut_is_counted(most: int) -> None:
    given = an_answer(20, 100, "x" * 16_000)
    result = await BoundJobAnswer(max_characters=most).after(a_call(), PLAN, CommandResult(exit_code=1, data=given))
    assert isinstance(result.data, dict)
    assert len(json.dumps(result.data, separators=(",", ":"))) <= most
    jsonschema.validate(result.data, output_schema())
    assert isinstance(result.data["failures"], list)
    assert isinstance(result.data["artifacts"], list)
    assert result.data["failures_left_out"] == 21 - len(result.data["failures"])
    assert result.data["artifacts_left_out"] == 100 - len(result.data["artifacts"])
    assert result.data["output_cut"] is True


async def test_a_small_answer_stays_as_it_is() -> None:
    given = an_answer(1, 1, "short")
    result = await BoundJobAnswer().after(a_call(), PLAN, CommandResult(exit_code=1, data=given))
    assert result.data == given


async def test_secrets_in_output_are_redacted_and_hashes_are_not() -> None:
    given = an_answer(0, 1, "Authorization: Bearer abcdef0123456789abcdef")
    result = await job_chain().after(a_call(), PLAN, CommandResult(exit_code=0, data=given))
    assert isinstance(result.data, dict)
    assert "abcdef0123456789" not in str(result.data["output"])
    assert result.data["artifacts"] == given["artifacts"]
    assert result.data["evidence_sha256"] == "0" * 64
