"""Budgets of tasks."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from browser_shell.core.calls import CommandResult, Principal, ToolCall
from browser_shell.core.errors import (
    BudgetExceeded,
    ErrorCode,
)
from browser_shell.core.json_values import JsonValue
from support.fakes import FakeClock, a_call
from support.gates import FAILED, NEW_DOCUMENT, OK, a_local_gate, admits, refusal, run_for


@pytest.mark.promise("limits:budget-retries")
async def test_a_call_that_fails_repeatedly_is_refused() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"max_retries": 2, "window_seconds": 100})
    call = a_call("click", "@e9")
    assert [await admits(gate, call, FAILED) for _ in range(4)] == [True, True, True, False]
    error = await refusal(gate, call)
    assert isinstance(error, BudgetExceeded)
    assert (error.rule_id, error.retry_after_seconds) == ("limits.budget.retries", 100)
    assert await admits(gate, a_call("click", "@e8"), FAILED)
    assert await admits(gate, a_call("click", "@e9", session_id="s2"), FAILED)
    assert await admits(gate, a_call("click", "@e9", subject="ann"), FAILED)
    clock.advance(101)
    assert await admits(gate, call)


async def test_success_resets_the_failures() -> None:
    gate = a_local_gate(budget={"max_retries": 1})
    for _ in range(5):
        assert await admits(gate, a_call(), FAILED)
        assert await admits(gate, a_call(), OK)


@pytest.mark.parametrize("result", [OK, NEW_DOCUMENT])
async def test_failures_are_forgotten_in_another_document(result: CommandResult) -> None:
    gate = a_local_gate(budget={"max_retries": 1})
    call = a_call("click", "text=Next")
    assert [await admits(gate, call, FAILED) for _ in range(3)] == [True, True, False]
    assert await admits(gate, a_call("open", "https://a.example/"), result)
    assert await admits(gate, call, FAILED) is result.shows_new_document


async def test_each_document_has_its_own_failures() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"max_retries": 0, "window_seconds": 100})
    call = a_call("click", "#next")
    for _ in range(4):
        assert [await admits(gate, call, FAILED) for _ in range(2)] == [True, False]
        clock.advance(40)
        assert await admits(gate, a_call("open", "https://a.example/"), NEW_DOCUMENT)


async def test_a_document_never_gets_the_failures_of_an_earlier_one() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"max_retries": 0, "window_seconds": 100})
    navigation, call = a_call("open", "https://a.example/"), a_call("click", "#next")
    assert await admits(gate, navigation, NEW_DOCUMENT)
    clock.advance(90)
    assert await admits(gate, call, FAILED)
    # The count of documents has expired, and begins again; the failure has not.
    clock.advance(20)
    assert await admits(gate, navigation, NEW_DOCUMENT)
    assert await admits(gate, call)


async def test_a_navigation_in_one_session_does_not_help_another() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    assert await admits(gate, a_call("click", "#next"), FAILED)
    for elsewhere in (a_call("open", session_id="s2"), a_call("open", subject="ann")):
        assert await admits(gate, elsewhere, NEW_DOCUMENT)
    assert not await admits(gate, a_call("click", "#next"))


async def test_a_failed_navigation_resets_no_failures() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    assert await admits(gate, a_call("click", "#next"), FAILED)
    assert await admits(gate, a_call("open", "https://a.example/"), FAILED)
    assert not await admits(gate, a_call("click", "#next"))
    assert not await admits(gate, a_call("open", "https://a.example/"))


async def test_failures_are_forgotten_when_the_session_is_closed() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    assert await admits(gate, a_call("click", "#next"), FAILED)
    assert await admits(gate, a_call("close"), OK)
    assert await admits(gate, a_call("click", "#next"))


async def test_a_later_step_is_charged_like_a_call_of_its_own() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"max_retries": 0, "elapsed_seconds": 10})
    lease = await gate.admit(a_call("back"), steps=3)
    await lease.begin(a_call("click", "#a"), after=OK)
    await run_for(lease, clock, 6, FAILED)
    assert not await admits(gate, a_call("click", "#a"))
    assert await admits(gate, a_call("back"))
    lease = await gate.admit(a_call("back"), steps=2)
    async with lease.running():
        clock.advance(6)
    with pytest.raises(BudgetExceeded) as exceeded:
        await lease.begin(a_call("forward"), after=OK)
    assert exceeded.value.rule_id == "limits.budget.elapsed"
    await lease.settle(None)


async def test_a_later_step_in_a_new_document_has_no_failures() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    assert await admits(gate, a_call("click", "#a"), FAILED)
    lease = await gate.admit(a_call("open", "https://a.example/"), steps=2)
    await lease.begin(a_call("click", "#a"), after=NEW_DOCUMENT)
    await lease.settle(OK)


async def test_a_session_can_be_closed_after_its_budget_is_used_up() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"max_retries": 0, "elapsed_seconds": 10})
    await run_for(await gate.admit(a_call("open")), clock, 11)
    error = await refusal(gate, a_call("snapshot"))
    assert error.rule_id == "limits.budget.elapsed"
    assert "are used up; try again in 3" in error.public_message
    for result in (FAILED, FAILED, OK):
        lease = await gate.admit(a_call("close"))
        async with lease.running():
            await anyio.lowlevel.checkpoint()
            clock.advance(1)
        await lease.settle(result)
    assert not await admits(gate, a_call("close", "now"))


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        *((code, code.exit_code != 75) for code in ErrorCode),
        (None, False),
    ],
)
async def test_errors_that_ask_to_try_later_are_not_failures(error: ErrorCode | None, counts: bool) -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    result = CommandResult(exit_code=error.exit_code if error else 0, error=error)
    assert await admits(gate, a_call(), result)
    assert await admits(gate, a_call()) is not counts


async def test_a_cancelled_call_is_not_a_failure() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    assert await admits(gate, a_call(), None)
    assert await admits(gate, a_call())


@pytest.mark.promise("limits:budget-elapsed")
async def test_a_task_without_time_left_is_refused_until_its_window_ends() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"elapsed_seconds": 10, "window_seconds": 100})
    await run_for(await gate.admit(a_call()), clock, 6)
    await run_for(await gate.admit(a_call("open")), clock, 6, None)
    error = await refusal(gate, a_call())
    assert isinstance(error, BudgetExceeded)
    assert (error.rule_id, error.retry_after_seconds) == ("limits.budget.elapsed", 94)
    assert await admits(gate, a_call(session_id="s2"))
    clock.advance(95)
    assert await admits(gate, a_call())


@pytest.mark.parametrize("arguments", [None, [], "text", {"argv": None}])
async def test_calls_with_invalid_arguments_are_counted(arguments: JsonValue) -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    call = ToolCall(call_id="c", principal=Principal(subject="u"), tool="browser-shell", arguments=arguments)
    assert [await admits(gate, call, FAILED) for _ in range(2)] == [True, False]


async def test_each_invalid_session_id_is_counted_separately() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    wrong = [a_call("open", session_id=session_id) for session_id in ("", "a b", "é")]
    assert [await admits(gate, call, FAILED) for call in (*wrong, wrong[0])] == [True, True, True, False]


async def test_a_repeated_call_with_another_timeout_is_the_same_call() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    calls = [
        ToolCall(
            call_id="c",
            principal=Principal(subject="u"),
            tool="browser-shell",
            arguments={"argv": ["wait", "#x"], "session_id": "s", "timeout_sec": seconds},
        )
        for seconds in (5, 6)
    ]
    assert [await admits(gate, call, FAILED) for call in calls] == [True, False]
