"""What is told while a job runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import anyio
import pytest

from browser_shell.core.calls import ToolCall
from browser_shell.core.plans import Plan
from browser_shell.core.ports import ReportProgress
from browser_shell.core.results import CommandResult
from browser_shell.pipeline import Pipeline
from support.fakes import a_call, a_pipeline


@dataclass
class TalkativeRunner:
    """Says on the way what its job printed last."""

    said: str

    async def run(self, call: ToolCall, plan: Plan, tell: ReportProgress) -> CommandResult:
        await tell(1.0, 60.0, self.said)
        return CommandResult(exit_code=0)


@pytest.mark.promise("results:redacted")
async def test_secrets_are_not_told_on_the_way_either() -> None:
    told: list[str] = []

    async def tell(done: float, total: float, message: str) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(message)

    runner = TalkativeRunner("GET /?access_token=s3cret")
    pipeline: Pipeline = replace(a_pipeline(), runner=runner)
    await pipeline.handle(a_call(), tell)
    assert told == ["GET /?access_token=[redacted]"]
