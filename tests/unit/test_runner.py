"""The backend of a plan."""

from __future__ import annotations

import pytest

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.ports import ignore_progress
from browser_shell.runner import ExecutionRunner
from support.fakes import RecordingSandbox, a_call, a_plan

JOB = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=1)


async def test_a_browser_command_runs_in_the_browser() -> None:
    sandbox = RecordingSandbox()
    await ExecutionRunner(browser=sandbox).run(a_call(), a_plan("back"), ignore_progress)
    assert [plan.name for _, plan in sandbox.ran] == ["back"]


async def test_steps_run_in_the_session_that_is_held() -> None:
    sandbox = RecordingSandbox()
    async with ExecutionRunner(browser=sandbox).hold(a_call(), a_plan("back")) as held:
        assert sandbox.is_held
        for name in ("back", "forward"):
            await held.run(a_call(), a_plan(name), ignore_progress)
        with pytest.raises(SandboxUnavailable):
            await held.run(a_call(), JOB, ignore_progress)
    assert not sandbox.is_held
    assert [plan.name for _, plan in sandbox.ran] == ["back", "forward"]


async def test_a_plan_without_a_backend_is_an_error() -> None:
    for plan in (a_plan(), JOB):
        with pytest.raises(SandboxUnavailable):
            await ExecutionRunner().run(a_call(), plan, ignore_progress)
        with pytest.raises(SandboxUnavailable):
            async with ExecutionRunner().hold(a_call(), plan):
                pass
