"""What the limits need of whatever counts for them."""

from __future__ import annotations

from typing import Protocol


class Counters(Protocol):
    """Named as in the `limits` library, whose Redis storage is one kind of these as it stands.

    It is not imported here: only a server with a Redis has a use for it.
    """

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Adds to a counter that ends `expiry` seconds after its first use. Returns its value."""

    async def get(self, key: str) -> int:
        """0 when there is no such counter."""

    async def get_expiry(self, key: str) -> float:
        """When the counter ends, by the clock of whoever counts."""

    async def clear(self, key: str) -> None: ...

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts if there is room in a window of `expiry` seconds; says whether there was."""

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """The counts of the previous and the current window, each with the seconds for which it still matters."""
