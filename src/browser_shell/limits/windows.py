"""Rate and quota: how many calls fit into a sliding minute, and into a sliding day."""

from __future__ import annotations

from functools import cache
from math import floor

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
from limits.aio.storage import SlidingWindowCounterSupport, Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import RateLimited
from browser_shell.limits.keys import subject_key
from browser_shell.policy.limits import CallLimits

# As many as the policy file has different numbers.
_per_minute = cache(RateLimitItemPerMinute)
_per_day = cache(RateLimitItemPerDay)


class CallWindows:
    """Counts calls of one subject and tool. A window that has no room for a call does not count it."""

    def __init__(self, storage: Storage) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(storage)

    async def take(self, call: ToolCall, limits: CallLimits) -> None:
        """Raises: RateLimited."""
        await self._take(call, _per_minute(limits.calls_per_minute), rule_id="limits.rate", words="calls a minute")
        await self._take(call, _per_day(limits.calls_per_day), rule_id="limits.quota", words="calls a day")

    async def _take(self, call: ToolCall, item: RateLimitItem, *, rule_id: str, words: str) -> None:
        owner = subject_key(call.principal.subject)
        if await self._limiter.hit(item, owner, call.tool):
            return
        seconds = await self._seconds_until_room(item, owner, call.tool)
        raise RateLimited(
            f"{call.tool}: {item.amount} {words} are allowed, and they are used; try again in {seconds} s",
            rule_id=rule_id,
            retry_after_seconds=seconds,
        )

    async def _seconds_until_room(self, item: RateLimitItem, *identifiers: str) -> int:
        storage = self._limiter.storage
        assert isinstance(storage, SlidingWindowCounterSupport)  # noqa: S101  the limiter refuses any other
        window = await storage.get_sliding_window(item.key_for(*identifiers), item.get_expiry())
        # At that very moment there is none yet, so never rounded down or left as it is.
        return floor(seconds_until_room(*window, limit=item.amount, length=item.get_expiry())) + 1


def seconds_until_room(
    previous: int, previous_left: float, current: int, current_left: float, *, limit: int, length: int
) -> float:
    """When the next call fits if none comes before it: the older window fades while the newer one grows.

    `current_left` is what remains of the current window and the one after it, as the library has it.
    """
    if current < limit:
        fades_at = previous_left - (limit - current) * length / previous if previous else 0.0
        return max(0.0, fades_at)
    until_next_window = max(0.0, current_left - length)
    return until_next_window + length * (1 - limit / current)
