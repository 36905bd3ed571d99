"""Agents wait while a person is in control."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import anyio
import pytest

from browser_shell.browser.sandbox import BrowserSandbox
from browser_shell.browser.session import Session
from browser_shell.browser.sessions import Sessions
from browser_shell.core.errors import ErrorCode, HumanInControl
from browser_shell.core.ports import ignore_progress
from browser_shell.egress.denials import RecentDenials
from browser_shell.policy.document import OutputSection
from support.fakes import (
    FakeClock,
    FakePerson,
    FakePolicy,
    HangingSandbox,
    RecordingAudit,
    RecordingSandbox,
    a_call,
    a_pipeline,
    a_plan,
)


@pytest.mark.promise("view:agents-wait")
@pytest.mark.parametrize("argv", [("snapshot",), ("open", "https://a.example/"), ("close",), ("tab", "list")])
async def test_call_is_refused_while_a_person_is_in_control(argv: tuple[str, ...]) -> None:
    sandbox, audit = RecordingSandbox(), RecordingAudit()
    outcome = await a_pipeline(sandbox=sandbox, audit=audit, human=FakePerson(seconds=7.2)).handle(a_call(*argv))
    assert (outcome.exit_code, outcome.error) == (75, ErrorCode.HUMAN_IN_CONTROL)
    assert outcome.retry_after_seconds == 8
    assert sandbox.ran == []
    assert "SANDBOX_EXEC" not in audit.kinds
    assert audit.records[-1].error == "HUMAN_IN_CONTROL"


async def test_call_runs_after_the_person_handed_back() -> None:
    person, sandbox = FakePerson(seconds=3), RecordingSandbox()
    pipeline = a_pipeline(sandbox=sandbox, human=person)
    await pipeline.handle(a_call())
    person.seconds = 0
    assert (await pipeline.handle(a_call())).exit_code == 0
    assert len(sandbox.ran) == 1


async def test_policy_refusal_takes_precedence_over_human_control() -> None:
    policy = FakePolicy(blocked_hosts=frozenset({"a.example"}))
    outcome = await a_pipeline(policy=policy, human=FakePerson(seconds=5)).handle(a_call("open", "https://a.example/"))
    assert outcome.error is ErrorCode.POLICY_BLOCKED


async def test_running_call_is_not_interrupted() -> None:
    person, sandbox = FakePerson(), HangingSandbox()
    pipeline = a_pipeline(sandbox=sandbox, human=person)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipeline.handle, a_call())
        await sandbox.started.wait()
        person.seconds = 10
        await pipeline.handle(a_call())
        assert not sandbox.stopped.is_set()
        tasks.cancel_scope.cancel()


@dataclass
class QueueingSessions:
    """Sessions for which a person takes over while a call waits."""

    person: FakePerson
    requested: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def hold(self, subject: str, session_id: str) -> AsyncIterator[Session]:
        self.requested.append(session_id)
        self.person.seconds = 4
        yield None  # type: ignore[misc]  # never used

    async def close(self, subject: str, session_id: str) -> bool:
        return True


@pytest.mark.promise("view:agents-wait")
async def test_call_that_waited_for_its_session_is_refused_too() -> None:
    person = FakePerson()
    sessions = QueueingSessions(person)
    sandbox = BrowserSandbox(
        sessions=cast(Sessions, sessions),
        driver=None,  # type: ignore[arg-type]  # never called
        denials_since=RecentDenials().since,
        human=person,
        clock=FakeClock(),
        output=OutputSection(),
    )
    with pytest.raises(HumanInControl):
        await sandbox.run(a_call(subject="alice"), a_plan(), ignore_progress)
    assert sessions.requested == ["s1"]
