"""Concurrency: who holds a place, and who gave it back."""

from __future__ import annotations

from typing import Protocol


class ConcurrencySlots(Protocol):
    """ConcurrencySlots that calls take and give back. A key stands for one subject and tool."""

    async def take(self, key: str, lease_id: str, *, limit: int) -> float:
        """0 when there was a place, which is then taken; otherwise the seconds after which to ask again."""

    async def give_back(self, key: str, lease_id: str) -> None:
        """Nothing happens when it was not taken."""


class LocalSlots:
    """Of this process: they end with it."""

    RETRY_SECONDS = 1.0

    def __init__(self) -> None:
        self._taken: dict[str, set[str]] = {}

    async def take(self, key: str, lease_id: str, *, limit: int) -> float:
        taken = self._taken.get(key, set())
        if len(taken) >= limit:
            return self.RETRY_SECONDS
        taken.add(lease_id)
        self._taken[key] = taken
        return 0.0

    async def give_back(self, key: str, lease_id: str) -> None:
        taken = self._taken.get(key)
        if taken is None:
            return
        taken.discard(lease_id)
        if not taken:
            del self._taken[key]

    def __len__(self) -> int:
        return sum(len(taken) for taken in self._taken.values())
