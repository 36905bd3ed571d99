"""Rate and quota."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import (
    ErrorCode,
    RateLimited,
)
from support.fakes import FakeClock, a_call
from support.gates import a_local_gate, admits, refusal


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
