"""Counters and concurrency slots: the contracts, and the implementation in the memory of this process.

The implementation uses the monotonic clock. On the wall clock, a jump forward would end every window early, and a jump
back would block callers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from browser_shell.core.ports import Clock

MAX_COUNTERS_OF_SUBJECT = 4_096
"""Above this number, a new counter of a subject replaces the oldest counter of the same subject."""
_SWEEP_SECONDS = 30.0


class Counters(Protocol):
    """Counters by key. The Redis storage of the `limits` library has these methods and is used unchanged."""

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add to a counter that expires `expiry` seconds after its first use. Return its value."""

    async def get(self, key: str) -> int:
        """Return 0 for a counter that does not exist."""

    async def get_expiry(self, key: str) -> float:
        """Return when the counter expires, by the clock of the implementation."""

    async def clear(self, key: str) -> None: ...

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` if a window of `expiry` seconds has room for it. Return whether it had."""

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Return the count and the remaining seconds of the previous window, then those of the current window."""


class ConcurrencySlots(Protocol):
    """Slots that running calls hold. A key stands for one subject and tool."""

    async def take(self, key: str, lease_id: str, *, limit: int) -> bool:
        """Take a slot. Return False if all are taken."""

    async def give_back(self, key: str, lease_id: str) -> None:
        """Free a slot. Does nothing if it was not taken."""


@lru_cache(maxsize=256)
def subject_key(subject: str) -> str:
    """Return the first part of every key of a subject."""
    return digest(subject.encode("utf-8", "surrogatepass"))


def digest(content: bytes) -> str:
    """Hash a value that a caller chose, so that keys have a bounded length."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(slots=True)
class _Counter:
    value: int
    ends_at: float


@dataclass(slots=True)
class _Window:
    """The counts of the window that started at `started` and of the window before it."""

    started: float
    length: int
    previous: int = 0
    current: int = 0

    @property
    def ends_at(self) -> float:
        """When both windows are over."""
        return self.started + 2 * self.length

    def left(self, now: float) -> float:
        return self.started + self.length - now


class MonotonicCounters:
    """Counters for one event loop. No method awaits anything, so every method is atomic."""

    def __init__(self, *, clock: Clock, max_counters_of_subject: int = MAX_COUNTERS_OF_SUBJECT) -> None:
        self._clock = clock
        self._max_counters_of_subject = max_counters_of_subject
        self._counters: dict[str, dict[str, _Counter]] = {}
        """By subject and key, oldest first."""
        self._windows: dict[str, _Window] = {}
        self._sweep_at = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._counters.values())) + len(self._windows)

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        now = self._now()
        counters = self._counters.setdefault(_owner_of(key), {})
        counter = counters.get(key)
        if counter is None or counter.ends_at <= now:
            counters.pop(key, None)
            if len(counters) >= self._max_counters_of_subject:
                del counters[next(iter(counters))]
            counter = counters[key] = _Counter(0, now + expiry)
        counter.value += amount
        return counter.value

    async def get(self, key: str) -> int:
        counter = self._find(key)
        return counter.value if counter is not None and counter.ends_at > self._clock.monotonic() else 0

    async def get_expiry(self, key: str) -> float:
        """Return a time of the monotonic clock."""
        counter = self._find(key)
        return counter.ends_at if counter is not None else self._clock.monotonic()

    async def clear(self, key: str) -> None:
        self._counters.get(_owner_of(key), {}).pop(key, None)

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        now = self._now()
        window = self._window(key, expiry, now)
        weighted = int(window.previous * window.left(now) / expiry) + window.current
        if weighted + amount > limit:
            return False
        window.current += amount
        self._windows[key] = window
        return True

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        now = self._clock.monotonic()
        window = self._window(key, expiry, now)
        return window.previous, window.left(now) if window.previous else 0.0, window.current, window.ends_at - now

    def _find(self, key: str) -> _Counter | None:
        return self._counters.get(_owner_of(key), {}).get(key)

    def _window(self, key: str, length: int, now: float) -> _Window:
        window = self._windows.get(key)
        if window is None or now >= window.ends_at:
            return _Window(started=now, length=length)
        if now >= window.started + length:
            return _Window(started=window.started + length, length=length, previous=window.current)
        return window

    def _now(self) -> float:
        """Return the time, and drop what has expired once in `_SWEEP_SECONDS`."""
        now = self._clock.monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + _SWEEP_SECONDS
            self._windows = {key: window for key, window in self._windows.items() if window.ends_at > now}
            for subject, counters in list(self._counters.items()):
                live = {key: counter for key, counter in counters.items() if counter.ends_at > now}
                if live:
                    self._counters[subject] = live
                else:
                    del self._counters[subject]
        return now


class LocalSlots:
    """Slots of this process."""

    def __init__(self) -> None:
        self._leases: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return sum(len(leases) for leases in self._leases.values())

    async def take(self, key: str, lease_id: str, *, limit: int) -> bool:
        leases = self._leases.setdefault(key, set())
        if len(leases) >= limit:
            return False
        leases.add(lease_id)
        return True

    async def give_back(self, key: str, lease_id: str) -> None:
        leases = self._leases.get(key, set())
        leases.discard(lease_id)
        if not leases:
            self._leases.pop(key, None)


def _owner_of(key: str) -> str:
    """Return the subject's part of a key."""
    return key.partition("/")[0]
