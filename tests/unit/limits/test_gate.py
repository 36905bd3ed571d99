"""The gate with counters in memory and a fake clock."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from browser_shell.core.errors import (
    PRECEDENCE,
    BrowserShellError,
    BudgetExceeded,
    ErrorCode,
    ExecutionTimedOut,
    PolicyBlocked,
    RateLimited,
    SandboxViolation,
    foremost,
)
from browser_shell.limits.gate import open_gate
from support.fakes import FakeClock, a_call
from support.gates import FAILED, OK, a_local_gate, admits, ids, refusal, rules, run_for


@pytest.mark.promise("limits:concurrency")
async def test_concurrent_calls_are_limited_and_finished_calls_free_their_slot() -> None:
    gate = a_local_gate(concurrent_calls=2)
    first, second = await gate.admit(a_call()), await gate.admit(a_call())
    error = await refusal(gate, a_call())
    assert (error.code, error.rule_id) == (ErrorCode.RATE_LIMITED, "limits.concurrency")
    await first.settle(OK)
    third = await gate.admit(a_call())
    assert not await admits(gate, a_call())
    for lease in (second, third):
        await lease.settle(None)
    assert len(gate.slots) == 0  # type: ignore[arg-type]


async def test_a_call_without_a_slot_does_not_count_towards_the_rate() -> None:
    gate = a_local_gate(concurrent_calls=1, calls_per_minute=2)
    lease = await gate.admit(a_call())
    for _ in range(10):
        assert not await admits(gate, a_call())
    await lease.settle(OK)
    assert await admits(gate, a_call())


async def test_a_call_above_the_rate_holds_no_slot() -> None:
    gate = a_local_gate(concurrent_calls=1, calls_per_minute=1)
    assert [await admits(gate, a_call()) for _ in range(3)] == [True, False, False]
    assert len(gate.slots) == 0  # type: ignore[arg-type]


@pytest.mark.promise("limits:subjects-apart")
async def test_a_subject_does_not_use_up_the_limits_of_another() -> None:
    gate = a_local_gate(calls_per_minute=5, concurrent_calls=1)
    lease = await gate.admit(a_call(subject="mallory"))
    for number in range(500):
        assert not await admits(gate, a_call(subject="mallory", session_id=f"s{number}"))
    await lease.settle(OK)
    assert [await admits(gate, a_call(subject="ann")) for _ in range(6)] == [True] * 5 + [False]


async def test_limits_of_a_subject_override_limits_of_a_tool_and_defaults() -> None:
    gate = a_local_gate(
        calls_per_minute=3,
        tools={"run_pytest": {"calls_per_minute": 2, "concurrent_calls": 1}},
        subjects={"ann": {"calls_per_minute": 1}},
    )
    for subject, tool, expected in [
        ("bob", "browser-shell", 3),
        ("bob", "run_pytest", 2),
        ("ann", "run_pytest", 1),
        ("ann", "browser-shell", 1),
    ]:
        assert sum([await admits(gate, a_call(subject=subject, tool=tool)) for _ in range(5)]) == expected


async def test_a_run_is_stopped_when_the_time_of_its_task_runs_out() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"elapsed_seconds": 10, "window_seconds": 100})
    await run_for(await gate.admit(a_call()), clock, 9.99)
    lease = await gate.admit(a_call())
    with anyio.fail_after(5), pytest.raises(BudgetExceeded) as caught:
        async with lease.running():
            await anyio.sleep_forever()
    assert caught.value.rule_id == "limits.budget.elapsed"


async def test_a_run_that_fails_is_charged() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, budget={"elapsed_seconds": 10, "window_seconds": 100})
    lease = await gate.admit(a_call())
    with suppress(SandboxViolation):
        async with lease.running():
            clock.advance(10)
            raise SandboxViolation("too many files")
    await lease.settle(None)
    error = await refusal(gate, a_call())
    assert error.rule_id == "limits.budget.elapsed"


async def test_a_cancelled_call_gives_its_slot_back() -> None:
    gate = a_local_gate(concurrent_calls=1)
    for _ in range(2):
        with anyio.CancelScope() as cancelled:
            cancelled.cancel()
            lease = await gate.admit(a_call())
            async with lease.running():
                pass
            await lease.settle(None)
        assert not cancelled.cancelled_caught


@pytest.mark.promise("limits:precedence")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (ExecutionTimedOut("late"), ErrorCode.TIMEOUT),
        (SandboxViolation("too many files"), ErrorCode.BUDGET_EXCEEDED),
        (PolicyBlocked("no"), ErrorCode.BUDGET_EXCEEDED),
    ],
)
async def test_an_error_at_the_end_of_the_budget_is_chosen_by_precedence(
    fault: BrowserShellError, code: ErrorCode
) -> None:
    gate = a_local_gate(FakeClock(), budget={"elapsed_seconds": 1})
    lease = await gate.admit(a_call())
    lease.task = replace(lease.task, seconds_left=0.01)

    async def run_until_stopped() -> None:
        async with lease.running():
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                raise fault from None

    with pytest.raises(BrowserShellError) as caught:
        await run_until_stopped()
    assert caught.value.code is code


async def test_an_error_within_the_budget_is_raised_unchanged() -> None:
    gate = a_local_gate()
    lease = await gate.admit(a_call())
    with pytest.raises(SandboxViolation):
        async with lease.running():
            raise SandboxViolation("too many files")


def test_errors_have_the_precedence_of_the_specification() -> None:
    assert [code.name for code in PRECEDENCE] == ["TIMEOUT", "BUDGET_EXCEEDED", "SANDBOX_VIOLATION", "POLICY_BLOCKED"]
    errors = [PolicyBlocked("p"), RateLimited("r"), SandboxViolation("s"), BudgetExceeded("b"), ExecutionTimedOut("t")]
    ordered = []
    while errors:
        ordered.append(foremost(*errors))
        errors.remove(ordered[-1])
    assert [error.code.name for error in ordered] == [*(code.name for code in PRECEDENCE), "RATE_LIMITED"]


async def test_the_default_gate_counts_in_memory() -> None:
    async with open_gate(rules(calls_per_minute=1), redis_url="", clock=FakeClock(), new_id=ids()) as gate:
        assert [await admits(gate, a_call()) for _ in range(2)] == [True, False]


async def test_a_used_up_budget_takes_precedence_over_the_rate() -> None:
    gate = a_local_gate(calls_per_minute=1, budget={"max_retries": 0})
    await admits(gate, a_call(), FAILED)
    assert (await refusal(gate, a_call())).code is ErrorCode.BUDGET_EXCEEDED
    assert (await refusal(gate, a_call("open"))).code is ErrorCode.RATE_LIMITED


@pytest.mark.promise("limits:no-clock-opens-the-gate")
@pytest.mark.parametrize("jump", [-400 * 86_400, -61, 61, 86_401, 400 * 86_400])
async def test_a_jump_of_the_wall_clock_does_not_change_the_limits(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, calls_per_minute=2, budget={"max_retries": 0, "window_seconds": 30})
    await admits(gate, a_call("click"), FAILED)
    await admits(gate, a_call())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    clock.epoch += jump
    assert (await refusal(gate, a_call("click"))).rule_id == "limits.budget.retries"
    assert (await refusal(gate, a_call())).rule_id == "limits.rate"
    clock.advance(31)
    assert (await refusal(gate, a_call("click"))).rule_id == "limits.rate"
    clock.advance(90)
    assert await admits(gate, a_call("click"))


@pytest.mark.promise("limits:rate")
async def test_calls_above_the_rate_are_refused_with_a_retry_time() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, calls_per_minute=3)
    assert [await admits(gate, a_call()) for _ in range(4)] == [True, True, True, False]
    error = await refusal(gate, a_call())
    assert isinstance(error, RateLimited)
    assert error.rule_id == "limits.rate"
    assert error.retry_after_seconds == 61
    clock.advance(59)
    assert not await admits(gate, a_call())
    clock.advance(2)
    assert await admits(gate, a_call())


async def test_the_rate_holds_across_two_windows() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, calls_per_minute=60)
    assert await admits(gate, a_call())
    clock.advance(55)
    before = sum([await admits(gate, a_call()) for _ in range(100)])
    clock.advance(10)
    after = sum([await admits(gate, a_call()) for _ in range(100)])
    assert (before, after) == (59, 5)  # A fixed window would let 60 more in.


@pytest.mark.parametrize("used", [1, 5, 9, 10])
@pytest.mark.parametrize("pause", [0, 7, 61, 95])
async def test_a_call_after_the_retry_time_is_admitted(used: int, pause: float) -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, calls_per_minute=10)
    for _ in range(used):
        await admits(gate, a_call())
    clock.advance(pause)
    while await admits(gate, a_call()):
        pass
    error = await refusal(gate, a_call())
    assert isinstance(error, RateLimited)
    clock.advance(error.retry_after_seconds or 0)
    assert await admits(gate, a_call())


async def test_refused_calls_are_not_counted() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, calls_per_minute=2)
    for _ in range(1000):
        await admits(gate, a_call())
    clock.advance(61)
    assert await admits(gate, a_call())


@pytest.mark.promise("limits:quota")
async def test_calls_above_the_quota_are_refused_for_a_day() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, calls_per_minute=10, calls_per_day=15)
    for _ in range(2):
        for _ in range(10):
            await admits(gate, a_call())
        clock.advance(121)
    error = await refusal(gate, a_call())
    assert (error.code, error.rule_id) == (ErrorCode.RATE_LIMITED, "limits.quota")
    clock.advance(86_000)
    assert not await admits(gate, a_call())
    clock.advance(400)
    assert await admits(gate, a_call())


async def test_steps_count_together_and_a_call_without_room_for_all_counts_none() -> None:
    clock = FakeClock()
    gate = a_local_gate(clock, calls_per_minute=5)
    await (await gate.admit(a_call(), steps=3)).settle(OK)
    with pytest.raises(RateLimited) as refused:
        await gate.admit(a_call(), steps=3)
    assert refused.value.rule_id == "limits.rate"
    await (await gate.admit(a_call(), steps=2)).settle(OK)
    seconds = refused.value.retry_after_seconds
    assert seconds is not None
    clock.advance(seconds + 60)
    await gate.admit(a_call(), steps=3)


async def test_more_steps_than_the_limit_allows_are_refused_for_good() -> None:
    with pytest.raises(RateLimited) as refused:
        await a_local_gate(calls_per_minute=5).admit(a_call(), steps=6)
    assert refused.value.retry_after_seconds is None


async def test_steps_take_one_slot() -> None:
    gate = a_local_gate(concurrent_calls=1)
    lease = await gate.admit(a_call(), steps=5)
    assert not await admits(gate, a_call())
    await lease.begin(a_call("back"), after=OK)
    assert not await admits(gate, a_call())
    await lease.settle(OK)
    assert await admits(gate, a_call())
