"""Rate and quota: how many calls fit into a sliding minute, and into a sliding day."""

from __future__ import annotations

from math import floor

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import RateLimited
from browser_shell.limits.counters import Counters
from browser_shell.limits.keys import subject_key
from browser_shell.policy.document import CallLimits

_MINUTE = 60
_DAY = 86_400


class CallWindows:
    """Counts calls of one subject and tool. A window that has no room for a call does not count it."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    async def take(self, call: ToolCall, limits: CallLimits) -> None:
        """Raises: RateLimited."""
        await self._take(call, limits.calls_per_minute, _MINUTE, rule_id="limits.rate", words="calls a minute")
        await self._take(call, limits.calls_per_day, _DAY, rule_id="limits.quota", words="calls a day")

    async def _take(self, call: ToolCall, most: int, seconds: int, *, rule_id: str, words: str) -> None:
        # The number is in the name: what was counted for another one says nothing about this.
        key = f"{subject_key(call.principal.subject)}/{call.tool}/{most}/{seconds}"
        if await self._counters.acquire_sliding_window_entry(key, most, seconds):
            return
        window = await self._counters.get_sliding_window(key, seconds)
        # At that very moment there is none yet, so never rounded down or left as it is.
        wait = floor(seconds_until_room(*window, limit=most, length=seconds)) + 1
        raise RateLimited(
            f"{call.tool}: {most} {words} are allowed, and they are used; try again in {wait} s",
            rule_id=rule_id,
            retry_after_seconds=wait,
        )


def seconds_until_room(
    previous: int, previous_left: float, current: int, current_left: float, *, limit: int, length: int
) -> float:
    """When the next call fits if none comes before it: the older window fades while the newer one grows.

    `current_left` is what remains of the current window and the one after it, as the counters have it.
    """
    if current < limit:
        fades_at = previous_left - (limit - current) * length / previous if previous else 0.0
        return max(0.0, fades_at)
    until_next_window = max(0.0, current_left - length)
    return until_next_window + length * (1 - limit / current)
