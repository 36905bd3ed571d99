"""Builds the gate: counters in this process, or on a Redis that several servers share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from browser_shell.core.ports import Clock, NewId
from browser_shell.limits.budget import BudgetBook
from browser_shell.limits.gate import LimitsGate
from browser_shell.limits.memory import MonotonicCounters
from browser_shell.limits.places import LocalSlots
from browser_shell.limits.windows import CallWindows
from browser_shell.policy.document import LimitsSection


def local_gate(rules: LimitsSection, *, clock: Clock, new_id: NewId) -> LimitsGate:
    """Counts what this process serves, by the monotonic clock."""
    counters = MonotonicCounters(clock=clock)
    return LimitsGate(
        rules=rules,
        windows=CallWindows(counters),
        budgets=BudgetBook(counters=counters, now=clock.monotonic),
        places=LocalSlots(),
        clock=clock,
        new_id=new_id,
        counts_here=True,
    )


@asynccontextmanager
async def opened_gate(
    rules: LimitsSection, *, redis_url: str, clock: Clock, new_id: NewId
) -> AsyncIterator[LimitsGate]:
    """The gate for as long as the server runs. Raises: ConfigurationInvalid."""
    if not redis_url:
        yield local_gate(rules, clock=clock, new_id=new_id)
        return
    # Here and not above: the client takes 4 MB of every server, and most have no Redis.
    from browser_shell.limits.shared_gate import shared_gate

    async with shared_gate(rules, redis_url=redis_url, clock=clock, new_id=new_id) as gate:
        yield gate
