"""While a person is in control agents wait, and people see what agents did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from browser_shell.browser.sandbox import ArtifactLimits, BrowserSandbox
from browser_shell.core.errors import ErrorCode, HumanInControl, UnknownTool
from browser_shell.core.ports import BrowserSession, ignore_progress
from browser_shell.core.results import CommandResult
from browser_shell.egress.recent_denials import RecentDenials
from support.fakes import (
    FakeClock,
    FakePerson,
    FakePolicy,
    HangingSandbox,
    RecordingActivity,
    RecordingAudit,
    RecordingSandbox,
    a_call,
    a_pipeline,
    a_plan,
    timing_out_sandbox,
)


@pytest.mark.promise("view:agents-wait")
@pytest.mark.parametrize("argv", [("snapshot",), ("open", "https://a.example/"), ("close",), ("tab", "list")])
async def test_no_command_runs_while_a_person_is_in_control(argv: tuple[str, ...]) -> None:
    sandbox, audit = RecordingSandbox(), RecordingAudit()
    outcome = await a_pipeline(sandbox=sandbox, audit=audit, human=FakePerson(seconds=7.2)).handle(a_call(*argv))
    assert (outcome.exit_code, outcome.error) == (75, ErrorCode.HUMAN_IN_CONTROL)
    assert outcome.retry_after_seconds == 8
    assert sandbox.ran == []
    assert "SANDBOX_EXEC" not in audit.kinds
    assert audit.records[-1].error == "HUMAN_IN_CONTROL"


async def test_when_the_person_has_handed_back_the_next_call_runs() -> None:
    person, sandbox = FakePerson(seconds=3), RecordingSandbox()
    pipeline = a_pipeline(sandbox=sandbox, human=person)
    await pipeline.handle(a_call())
    person.seconds = 0
    assert (await pipeline.handle(a_call())).exit_code == 0
    assert len(sandbox.ran) == 1


async def test_what_the_policy_forbids_is_not_worth_waiting_for() -> None:
    policy = FakePolicy(blocked_hosts=frozenset({"a.example"}))
    outcome = await a_pipeline(policy=policy, human=FakePerson(seconds=5)).handle(a_call("open", "https://a.example/"))
    assert outcome.error is ErrorCode.POLICY_BLOCKED


async def test_a_call_under_way_is_not_interrupted() -> None:
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
    """A person takes over while the call stands in line for its session."""

    person: FakePerson
    held: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def hold(self, subject: str, session_id: str) -> AsyncIterator[BrowserSession]:
        self.held.append(session_id)
        self.person.seconds = 4
        yield None  # type: ignore[misc]  # Nothing may be done with it.

    def name_of(self, subject: str, session_id: str) -> str:
        return session_id

    async def close(self, subject: str, session_id: str) -> bool:
        return True


@pytest.mark.promise("view:agents-wait")
async def test_a_call_that_stood_in_line_waits_too() -> None:
    person = FakePerson()
    sessions = QueueingSessions(person)
    sandbox = BrowserSandbox(
        sessions=sessions,
        driver=None,  # type: ignore[arg-type]  # It may not even be asked.
        denials=RecentDenials(),
        human=person,
        clock=FakeClock(),
        limits=ArtifactLimits(screenshot_format="png", max_image_bytes=1, max_pdf_bytes=1),
    )
    with pytest.raises(HumanInControl):
        await sandbox.run(a_call(subject="alice"), a_plan(), ignore_progress)
    assert sessions.held == ["s1"]


async def test_every_finished_call_is_listed_without_what_was_typed() -> None:
    activity = RecordingActivity()
    pipeline = a_pipeline(
        show_activity=activity.add, sandbox=RecordingSandbox(result=CommandResult(exit_code=0, data={}))
    )
    await pipeline.handle(a_call("fill", "#password", "hunter2"))
    await pipeline.handle(a_call("open", "https://a.example/path?token=secret"))
    fill, opened = activity.entries
    assert (fill.subject, fill.session_id, fill.what, fill.result) == ("local", "s1", "fill", "ok")
    assert fill.duration_ms is not None
    assert (opened.what, opened.detail) == ("open", "a.example")
    assert "hunter2" not in repr(activity.entries)
    assert "secret" not in repr(activity.entries)


async def test_refusals_failures_and_nonsense_are_listed_by_their_code_word() -> None:
    activity = RecordingActivity()
    policy = FakePolicy(blocked_hosts=frozenset({"a.example"}))
    await a_pipeline(show_activity=activity.add, policy=policy).handle(a_call("open", "https://a.example/"))
    await a_pipeline(show_activity=activity.add, sandbox=timing_out_sandbox()).handle(a_call())
    await a_pipeline(show_activity=activity.add).handle(a_call(session_id=7))
    with pytest.raises(UnknownTool):
        await a_pipeline(show_activity=activity.add).handle(a_call(tool="nonsense"))
    assert [(entry.what, entry.result) for entry in activity.entries] == [
        ("open", "POLICY_BLOCKED"),
        ("snapshot", "TIMEOUT"),
        ("", "INVALID_ARGUMENTS"),
        ("", "INVALID_ARGUMENTS"),
    ]
    assert activity.entries[0].detail == "a.example host.blocked"
