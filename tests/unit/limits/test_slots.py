"""Concurrency slots of one process."""

from __future__ import annotations

from browser_shell.limits.slots import LocalSlots


async def test_giving_back_a_slot_that_was_not_taken_has_no_effect() -> None:
    slots = LocalSlots()
    await slots.give_back("k", "never taken")
    assert await slots.take("k", "a", limit=1) == 0
    await slots.give_back("k", "b")
    assert await slots.take("k", "c", limit=1) > 0
