"""Token buckets: rate limits that allow bursts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from browser_shell.core.ports import Clock

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    updated_at: float


class TokenBuckets(Generic[_Key]):
    """One bucket per key. A new bucket is full; the least recently used one is dropped when there are too many."""

    def __init__(self, *, clock: Clock, capacity: int, tokens_per_second: float, max_keys: int = 4096) -> None:
        self._clock = clock
        self._capacity = capacity
        self._tokens_per_second = tokens_per_second
        self._max_keys = max_keys
        self._buckets: OrderedDict[_Key, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: _Key) -> float:
        """Take one token. Returns 0, or the seconds until a token is available."""
        now = self._clock.monotonic()
        bucket = self._buckets.setdefault(key, _Bucket(self._capacity, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        refill = (now - bucket.updated_at) * self._tokens_per_second
        bucket.tokens, bucket.updated_at = min(self._capacity, bucket.tokens + refill), now
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / self._tokens_per_second
        bucket.tokens -= 1
        return 0.0
