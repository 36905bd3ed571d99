"""Counters and slots in memory: expiry, how many are kept, and their keys as observed at the gate."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import RateLimited
from browser_shell.limits.counters import LocalSlots, MonotonicCounters
from support.fakes import FakeClock, a_call
from support.gates import a_local_gate, admits


async def test_a_counter_expires_one_window_after_its_first_use() -> None:
    clock = FakeClock()
    counters = MonotonicCounters(clock=clock)
    assert await counters.incr("u/a", 10) == 1
    clock.advance(9)
    assert await counters.incr("u/a", 10, amount=5) == 6
    assert await counters.get_expiry("u/a") - clock.monotonic() == 1
    clock.advance(1)
    assert await counters.get("u/a") == 0
    assert await counters.incr("u/a", 10) == 1


async def test_expired_counters_are_dropped() -> None:
    clock = FakeClock()
    counters = MonotonicCounters(clock=clock)
    for number in range(10_000):
        await counters.incr(f"u{number}/a", 10)
        await counters.acquire_sliding_window_entry(f"u{number}", 5, 10)
        clock.advance(0.1)
    assert len(counters) < 1_000


async def test_a_subject_with_too_many_counters_loses_only_its_own() -> None:
    counters = MonotonicCounters(clock=FakeClock(), max_counters_of_subject=3)
    await counters.incr("ann/t", 100)
    for number in range(1_000):
        await counters.incr(f"mallory/{number}", 100)
    assert len(counters) == 4
    assert await counters.get("ann/t") == 1
    assert [await counters.get(f"mallory/{number}") for number in (0, 996, 997, 999)] == [0, 0, 1, 1]


async def test_refused_calls_create_no_counters() -> None:
    gate = a_local_gate(calls_per_minute=1)
    lease = await gate.admit(a_call())
    await lease.settle(None)
    counters = gate.counters
    assert isinstance(counters, MonotonicCounters)
    before = len(counters)
    for number in range(200):
        with pytest.raises(RateLimited):
            await gate.admit(a_call(session_id=f"s{number}"))
    assert len(counters) == before


async def test_a_cleared_counter_starts_at_zero() -> None:
    counters = MonotonicCounters(clock=FakeClock())
    await counters.incr("u/a", 10)
    await counters.clear("u/a")
    await counters.clear("u/never")
    assert (await counters.get("u/a"), len(counters)) == (0, 0)


async def test_a_full_window_has_room_when_the_previous_one_loses_weight() -> None:
    clock = FakeClock()
    counters = MonotonicCounters(clock=clock)
    assert [await counters.acquire_sliding_window_entry("w", 2, 10) for _ in range(3)] == [True, True, False]
    clock.advance(10)
    assert not await counters.acquire_sliding_window_entry("w", 2, 10)
    clock.advance(5)
    assert [await counters.acquire_sliding_window_entry("w", 2, 10) for _ in range(2)] == [True, False]


async def test_giving_back_a_slot_that_was_not_taken_has_no_effect() -> None:
    slots = LocalSlots()
    await slots.give_back("k", "never taken")
    assert await slots.take("k", "a", limit=1)
    await slots.give_back("k", "b")
    assert not await slots.take("k", "c", limit=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "browser-shell"), ("a", "run_pytest")),
        (("a/browser-shell", "x"), ("a", "browser-shell/x")),
        (("a", "x"), ("a\ud800", "x")),
        (("a", "x"), ("A", "x")),
    ],
)
async def test_each_subject_and_tool_is_counted_separately(one: tuple[str, str], other: tuple[str, str]) -> None:
    gate = a_local_gate(calls_per_minute=1)
    for subject, tool in (one, other):
        assert await admits(gate, a_call(subject=subject, tool=tool))
        assert not await admits(gate, a_call(subject=subject, tool=tool))
