"""The counters of one process: what they remember, and how much."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import RateLimited
from browser_shell.limits.memory import MonotonicMemoryStorage
from browser_shell.testing.fakes import FakeClock, a_call
from support.gates import a_local_gate


async def test_a_counter_ends_one_window_after_its_first_use() -> None:
    clock = FakeClock()
    storage = MonotonicMemoryStorage(clock=clock)
    assert await storage.incr("u/a", 10) == 1
    clock.advance(9)
    assert await storage.incr("u/a", 10, amount=5) == 6
    assert await storage.get_expiry("u/a") - clock.monotonic() == 1
    clock.advance(1)
    assert await storage.get("u/a") == 0
    assert await storage.incr("u/a", 10) == 1


async def test_what_is_over_is_forgotten() -> None:
    clock = FakeClock()
    storage = MonotonicMemoryStorage(clock=clock)
    for number in range(10_000):
        await storage.incr(f"u{number}/a", 10)
        await storage.acquire_sliding_window_entry(f"u{number}", 5, 10)
        clock.advance(0.1)
    assert len(storage) < 1_000


async def test_a_subject_with_countless_tasks_pushes_out_its_own_and_nobody_elses() -> None:
    storage = MonotonicMemoryStorage(clock=FakeClock(), max_counters_of_subject=3)
    await storage.incr("ann/t", 100)
    for number in range(1_000):
        await storage.incr(f"mallory/{number}", 100)
    assert len(storage) == 4
    assert await storage.get("ann/t") == 1
    assert [await storage.get(f"mallory/{number}") for number in (0, 996, 997, 999)] == [0, 0, 1, 1]


async def test_a_flood_of_refused_calls_is_not_remembered() -> None:
    gate = a_local_gate(calls_per_minute=1)
    lease = await gate.admit(a_call())
    await lease.settle(None)
    storage = gate.budgets.storage
    assert isinstance(storage, MonotonicMemoryStorage)
    before = len(storage)
    for number in range(200):
        with pytest.raises(RateLimited):
            await gate.admit(a_call(session_id=f"s{number}"))
    assert len(storage) == before


async def test_clear_and_reset_and_check() -> None:
    storage = MonotonicMemoryStorage(clock=FakeClock())
    await storage.incr("u/a", 10)
    await storage.clear("u/a")
    await storage.clear("u/never")
    assert await storage.get("u/a") == 0
    await storage.incr("u/b", 10)
    await storage.acquire_sliding_window_entry("w", 1, 10)
    assert not await storage.acquire_sliding_window_entry("w", 1, 10)
    await storage.clear_sliding_window("w", 10)
    assert await storage.acquire_sliding_window_entry("w", 1, 10)
    assert await storage.reset() == 2
    assert (len(storage), await storage.check()) == (0, True)
