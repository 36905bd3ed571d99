"""Rate limits that allow bursts."""

from __future__ import annotations

import pytest

from browser_shell.core.token_bucket import TokenBuckets
from support.fakes import FakeClock


def test_bucket_refills_with_time() -> None:
    clock = FakeClock()
    buckets: TokenBuckets[str] = TokenBuckets(clock=clock, capacity=3, tokens_per_second=10)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == pytest.approx(0.1)
    assert buckets.take("b") == 0
    clock.advance(0.2)
    assert [buckets.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_bucket_holds_no_more_than_its_capacity() -> None:
    clock = FakeClock()
    buckets: TokenBuckets[str] = TokenBuckets(clock=clock, capacity=5, tokens_per_second=10)
    buckets.take("a")
    clock.advance(1_000_000)
    assert sum(buckets.take("a") == 0 for _ in range(10)) == 5


def test_least_recently_used_bucket_is_dropped() -> None:
    buckets: TokenBuckets[str] = TokenBuckets(clock=FakeClock(), capacity=1, tokens_per_second=1, max_keys=2)
    assert [buckets.take(key) for key in ("a", "b", "a")] == [0, 0, 1]
    assert buckets.take("c") == 0  # drops b
    assert len(buckets) == 2
    assert (buckets.take("a"), buckets.take("b")) == (1, 0)
