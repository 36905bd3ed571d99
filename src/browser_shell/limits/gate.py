"""The gate that admits calls: budget of the task, concurrency, rate and quota."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from math import floor

import anyio
import structlog

from browser_shell.core.calls import CommandResult, ToolCall
from browser_shell.core.errors import BrowserShellError, LimitsUnavailable, RateLimited, foremost
from browser_shell.core.ports import Clock, NewId
from browser_shell.limits.budget import TaskBudget, TaskBudgets
from browser_shell.limits.counters import ConcurrencySlots, Counters, LocalSlots, MonotonicCounters, subject_key
from browser_shell.policy.document import LimitsSection

ADMIT_SECONDS = 2.0
SETTLE_SECONDS = 2.0
_GIVE_BACK_SECONDS = 0.5
_RETRY_SECONDS = 5.0
_SLOT_RETRY_SECONDS = 1.0
_MINUTE = 60
_DAY = 86_400

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsGate:
    """Enforce the limits of the policy. The counters are in this process or on a Redis."""

    rules: LimitsSection
    counters: Counters
    budgets: TaskBudgets
    slots: ConcurrencySlots
    clock: Clock
    new_id: NewId
    counter_errors: tuple[type[Exception], ...] = (OSError,)
    """Exceptions of counters that cannot be reached. `TimeoutError` is an `OSError`."""

    async def admit(self, call: ToolCall, *, steps: int = 1) -> GateLease:
        """Admit a call, given as its first step. Every step counts against rate and quota.

        Raises: BudgetExceeded, RateLimited, LimitsUnavailable.
        """
        with self.checking(call):
            return await self._admit(call, steps)

    @contextmanager
    def checking(self, call: ToolCall) -> Iterator[None]:
        """Limit the time of counters, and raise LimitsUnavailable if they do not answer."""
        try:
            with anyio.fail_after(ADMIT_SECONDS):
                yield
        except self.counter_errors as fault:
            log.warning("limits_unavailable", call_id=call.call_id, fault=type(fault).__name__)
            raise LimitsUnavailable(
                "the limits cannot be checked now, so no call is run",
                rule_id="limits.unavailable",
                retry_after_seconds=_RETRY_SECONDS,
            ) from fault

    async def _admit(self, call: ToolCall, steps: int) -> GateLease:
        limits = self.rules.of(call.principal.subject, call.tool)
        # The budget comes first because its error has precedence. The slot comes before the rate because it can be
        # given back.
        task = await self.budgets.open(call, limits.budget)
        lease = GateLease(
            gate=self,
            call_id=call.call_id,
            task=task,
            tool_key=f"{subject_key(call.principal.subject)}/{call.tool}",
            lease_id=self.new_id(),
        )
        try:
            await self._take_slot(lease, call.tool, limits.concurrent_calls)
            rate = _Window(limit=limits.calls_per_minute, seconds=_MINUTE, rule_id="limits.rate", unit="calls a minute")
            quota = _Window(limit=limits.calls_per_day, seconds=_DAY, rule_id="limits.quota", unit="calls a day")
            for window in (rate, quota):
                await self._count(call, steps, window)
        except BaseException:
            # Also after cancellation between the request for a slot and its reply.
            with suppress(*self.counter_errors), anyio.move_on_after(_GIVE_BACK_SECONDS, shield=True):
                await lease.give_back()
            raise
        return lease

    async def _take_slot(self, lease: GateLease, tool: str, limit: int) -> None:
        if not await self.slots.take(lease.tool_key, lease.lease_id, limit=limit):
            raise RateLimited(
                f"{tool}: the limit of {limit} concurrent calls is reached",
                rule_id="limits.concurrency",
                retry_after_seconds=_SLOT_RETRY_SECONDS,
            )

    async def _count(self, call: ToolCall, steps: int, window: _Window) -> None:
        """Count all steps of a call in a sliding window, unless it has no room for them. Raises: RateLimited."""
        # The limit is part of the key, so that a changed limit starts with a new count.
        key = f"{subject_key(call.principal.subject)}/{call.tool}/{window.limit}/{window.seconds}"
        if await self.counters.acquire_sliding_window_entry(key, window.limit, window.seconds, steps):
            return
        if steps > window.limit:
            raise RateLimited(
                f"{call.tool}: {steps} steps are more than the limit of {window.limit} {window.unit}; use fewer steps",
                rule_id=window.rule_id,
            )
        counts = await self.counters.get_sliding_window(key, window.seconds)
        # Rounded up to the next whole second: exactly at the computed time there is no room yet.
        retry_seconds = (
            floor(_seconds_until_room(*counts, room_below=window.limit - steps + 1, length=window.seconds)) + 1
        )
        raise RateLimited(
            f"{call.tool}: the limit of {window.limit} {window.unit} is reached; try again in {retry_seconds} s",
            rule_id=window.rule_id,
            retry_after_seconds=retry_seconds,
        )


def _seconds_until_room(
    previous: int, previous_left: float, current: int, current_left: float, *, room_below: int, length: int
) -> float:
    """Return when the weighted count falls below `room_below`, provided that no call comes before.

    The weight of the previous window decreases linearly. `current_left` covers the rest of the current window and the
    whole next one, as in `Counters.get_sliding_window`.
    """
    if current < room_below:
        return max(0.0, previous_left - (room_below - current) * length / previous if previous else 0.0)
    until_next_window = max(0.0, current_left - length)
    return until_next_window + length * (1 - room_below / current)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A limit of calls in a sliding window."""

    limit: int
    seconds: int
    rule_id: str
    unit: str


@dataclass(slots=True, kw_only=True)
class GateLease:
    """One admitted call."""

    gate: LimitsGate
    call_id: str
    task: TaskBudget
    tool_key: str
    lease_id: str
    ran_seconds: float = 0.0

    async def begin(self, step: ToolCall, *, after: CommandResult | None = None) -> None:
        """Charge the step that ran so far, and look up the budget of the next one.

        Raises: BudgetExceeded, LimitsUnavailable.
        """
        with self.gate.checking(step):
            ran_seconds, self.ran_seconds = self.ran_seconds, 0.0
            await self.gate.budgets.charge(self.task, ran_seconds=ran_seconds, result=after)
            self.task = await self.gate.budgets.open(step, self.task.budget)

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
                await self.give_back()
                await self.gate.budgets.charge(self.task, ran_seconds=self.ran_seconds, result=result)
            except self.gate.counter_errors as fault:
                log.warning("limits_not_settled", call_id=self.call_id, fault=type(fault).__name__)
        if deadline.cancelled_caught:
            log.warning("limits_not_settled", call_id=self.call_id, fault="timeout")

    async def give_back(self) -> None:
        await self.gate.slots.give_back(self.tool_key, self.lease_id)


def local_gate(rules: LimitsSection, *, clock: Clock, new_id: NewId) -> LimitsGate:
    """Build a gate with counters in this process."""
    counters = MonotonicCounters(clock=clock)
    return LimitsGate(
        rules=rules,
        counters=counters,
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
            counters=counters,
            # The library computes expiry times as time.time() plus the TTL in Redis.
            budgets=TaskBudgets(counters=counters, now=time.time),
            slots=slots,
            clock=clock,
            new_id=new_id,
            counter_errors=ERRORS,
        )
