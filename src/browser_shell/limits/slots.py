"""Concurrency: slots that running calls hold."""

from __future__ import annotations

from typing import Protocol


class ConcurrencySlots(Protocol):
    """Slots by key, which stands for one subject and tool."""

    async def take(self, key: str, lease_id: str, *, limit: int) -> float:
        """Take a slot and return 0, or return the seconds after which to try again."""

    async def give_back(self, key: str, lease_id: str) -> None:
        """Free a slot. Does nothing if it was not taken."""


class LocalSlots:
    """Slots of this process."""

    RETRY_SECONDS = 1.0

    def __init__(self) -> None:
        self._leases: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return sum(len(leases) for leases in self._leases.values())

    async def take(self, key: str, lease_id: str, *, limit: int) -> float:
        leases = self._leases.setdefault(key, set())
        if len(leases) >= limit:
            return self.RETRY_SECONDS
        leases.add(lease_id)
        return 0.0

    async def give_back(self, key: str, lease_id: str) -> None:
        leases = self._leases.get(key, set())
        leases.discard(lease_id)
        if not leases:
            self._leases.pop(key, None)
