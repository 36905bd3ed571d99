"""The gate that admits calls: budget of the task, concurrency, rate and quota."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import structlog

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import BrowserShellError, LimitsUnavailable, RateLimited, foremost
from browser_shell.core.ports import Clock, NewId
from browser_shell.core.results import CommandResult
from browser_shell.limits.budget import TaskBudget, TaskBudgets
from browser_shell.limits.keys import subject_key
from browser_shell.limits.memory_counters import MonotonicCounters
from browser_shell.limits.rate import CallWindows
from browser_shell.limits.slots import ConcurrencySlots, LocalSlots
from browser_shell.policy.document import CallLimits, LimitsSection

ADMIT_SECONDS = 2.0
SETTLE_SECONDS = 2.0
_GIVE_BACK_SECONDS = 0.5
_RETRY_SECONDS = 5.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsGate:
    """Enforce the limits of the policy. The counters are in this process or on a Redis."""

    rules: LimitsSection
    windows: CallWindows
    budgets: TaskBudgets
    slots: ConcurrencySlots
    clock: Clock
    new_id: NewId
    counter_errors: tuple[type[Exception], ...] = (OSError,)
    """Exceptions of counters that cannot be reached. `TimeoutError` is an `OSError`."""

    async def admit(self, call: ToolCall) -> GateLease:
        """Raises: BudgetExceeded, RateLimited, LimitsUnavailable."""
        try:
            with anyio.fail_after(ADMIT_SECONDS):
                return await self._admit(call)
        except self.counter_errors as fault:
            log.warning("limits_unavailable", call_id=call.call_id, fault=type(fault).__name__)
            raise LimitsUnavailable(
                "the limits cannot be checked now, so no call is run",
                rule_id="limits.unavailable",
                retry_after_seconds=_RETRY_SECONDS,
            ) from fault

    async def _admit(self, call: ToolCall) -> GateLease:
        limits = self.rules.of(call.principal.subject, call.tool)
        # The budget comes first because its error has precedence. The slot comes before the rate because it can be
        # given back.
        task = await self.budgets.open(call, limits.budget)
        lease = GateLease(
            gate=self,
            call_id=call.call_id,
            task=task,
            slot_key=f"{subject_key(call.principal.subject)}/{call.tool}",
            lease_id=self.new_id(),
        )
        try:
            await self._take_slot(lease, call.tool, limits)
            await self.windows.take(call, limits)
        except BaseException:
            # Also after cancellation between the request for a slot and its reply.
            with suppress(*self.counter_errors), anyio.move_on_after(_GIVE_BACK_SECONDS, shield=True):
                await lease.give_back()
            raise
        return lease

    async def _take_slot(self, lease: GateLease, tool: str, limits: CallLimits) -> None:
        retry_seconds = await self.slots.take(lease.slot_key, lease.lease_id, limit=limits.concurrent_calls)
        if retry_seconds:
            raise RateLimited(
                f"{tool}: the limit of {limits.concurrent_calls} concurrent calls is reached",
                rule_id="limits.concurrency",
                retry_after_seconds=retry_seconds,
            )


@dataclass(slots=True, kw_only=True)
class GateLease:
    """One admitted call."""

    gate: LimitsGate
    call_id: str
    task: TaskBudget
    slot_key: str
    lease_id: str
    ran_seconds: float = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Measure the block, and cancel it when the budget of the task is used up. Raises: BudgetExceeded."""
        clock, fault = self.gate.clock, None
        started = clock.monotonic()
        with anyio.move_on_after(self.task.seconds_left) as scope:
            try:
                yield
            except BrowserShellError as error:
                if not scope.cancel_called:
                    raise
                fault = error
            finally:
                self.ran_seconds += clock.monotonic() - started
        if scope.cancelled_caught or fault is not None:
            exceeded = self.task.exceeded_after(self.ran_seconds)
            raise foremost(exceeded, fault) if fault is not None else exceeded

    async def settle(self, result: CommandResult | None) -> None:
        """Free the slot and charge the budget. Never raises: a slot that cannot be freed expires."""
        with anyio.move_on_after(SETTLE_SECONDS, shield=True) as deadline:
            try:
                await self._settle(result)
            except self.gate.counter_errors as fault:
                log.warning("limits_not_settled", call_id=self.call_id, fault=type(fault).__name__)
        if deadline.cancelled_caught:
            log.warning("limits_not_settled", call_id=self.call_id, fault="timeout")

    async def _settle(self, result: CommandResult | None) -> None:
        await self.give_back()
        await self.gate.budgets.charge(self.task, ran_seconds=self.ran_seconds, result=result)

    async def give_back(self) -> None:
        await self.gate.slots.give_back(self.slot_key, self.lease_id)


def local_gate(rules: LimitsSection, *, clock: Clock, new_id: NewId) -> LimitsGate:
    """Build a gate with counters in this process."""
    counters = MonotonicCounters(clock=clock)
    return LimitsGate(
        rules=rules,
        windows=CallWindows(counters),
        budgets=TaskBudgets(counters=counters, now=clock.monotonic),
        slots=LocalSlots(),
        clock=clock,
        new_id=new_id,
    )


@asynccontextmanager
async def open_gate(rules: LimitsSection, *, redis_url: str, clock: Clock, new_id: NewId) -> AsyncIterator[LimitsGate]:
    """Open the gate of a server, on Redis if `redis_url` is set. Raises: ConfigurationInvalid."""
    if not redis_url:
        yield local_gate(rules, clock=clock, new_id=new_id)
        return
    # Lazy import: the Redis client takes 5 MB of memory, and most servers do not use it.
    from browser_shell.limits.redis_backend import ERRORS, open_redis

    async with open_redis(redis_url) as (counters, slots):
        yield LimitsGate(
            rules=rules,
            windows=CallWindows(counters),
            # The library computes expiry times as time.time() plus the TTL in Redis.
            budgets=TaskBudgets(counters=counters, now=time.time),
            slots=slots,
            clock=clock,
            new_id=new_id,
            counter_errors=ERRORS,
        )
