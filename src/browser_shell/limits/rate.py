"""Rate and quota: sliding windows of a minute and of a day."""

from __future__ import annotations

from math import floor
from typing import Protocol

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import RateLimited
from browser_shell.limits.keys import subject_key
from browser_shell.policy.document import CallLimits

_MINUTE = 60
_DAY = 86_400


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


class CallWindows:
    """Count the calls of each subject and tool. Refused calls are not counted."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    async def take(self, call: ToolCall, limits: CallLimits) -> None:
        """Raises: RateLimited."""
        await self._take(call, limits.calls_per_minute, _MINUTE, rule_id="limits.rate", unit="calls a minute")
        await self._take(call, limits.calls_per_day, _DAY, rule_id="limits.quota", unit="calls a day")

    async def _take(self, call: ToolCall, limit: int, seconds: int, *, rule_id: str, unit: str) -> None:
        # The limit is part of the key, so that a changed limit starts with a new count.
        key = f"{subject_key(call.principal.subject)}/{call.tool}/{limit}/{seconds}"
        if await self._counters.acquire_sliding_window_entry(key, limit, seconds):
            return
        window = await self._counters.get_sliding_window(key, seconds)
        # Rounded up to the next whole second: exactly at the computed time there is no room yet.
        retry_seconds = floor(seconds_until_room(*window, limit=limit, length=seconds)) + 1
        raise RateLimited(
            f"{call.tool}: the limit of {limit} {unit} is reached; try again in {retry_seconds} s",
            rule_id=rule_id,
            retry_after_seconds=retry_seconds,
        )


def seconds_until_room(
    previous: int, previous_left: float, current: int, current_left: float, *, limit: int, length: int
) -> float:
    """Return when the next call fits, provided that none comes before it.

    The weight of the previous window decreases linearly. `current_left` covers the rest of the current window and the
    whole next one, as in `Counters.get_sliding_window`.
    """
    if current < limit:
        return max(0.0, previous_left - (limit - current) * length / previous if previous else 0.0)
    until_next_window = max(0.0, current_left - length)
    return until_next_window + length * (1 - limit / current)
