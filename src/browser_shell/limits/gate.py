"""The gate that every call passes: a budget that is not used up, a place, and room in the minute and the day."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import structlog

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import BrowserShellError, LimitsUnavailable, RateLimited, foremost
from browser_shell.core.ports import Clock, NewId
from browser_shell.core.results import CommandResult
from browser_shell.limits.budget import BudgetBook, TaskBudget, exceeded_while_running
from browser_shell.limits.keys import subject_key
from browser_shell.limits.places import ConcurrencySlots
from browser_shell.limits.windows import CallWindows
from browser_shell.policy.document import CallLimits, LimitsSection

ADMIT_SECONDS = 2.0
"""Longer than that nobody waits for counters that are elsewhere."""
SETTLE_SECONDS = 2.0
_GIVE_BACK_SECONDS = 0.5
_RETRY_SECONDS = 5.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsGate:
    """Rate, quota, concurrency and budgets, by the policy's numbers. Where they are counted is up to its parts."""

    rules: LimitsSection
    windows: CallWindows
    budgets: BudgetBook
    places: ConcurrencySlots
    clock: Clock
    new_id: NewId
    counts_here: bool = False
    """Whether all is counted in this process. Then nothing is ever waited for, and nothing needs a time limit."""
    counters_away: tuple[type[Exception], ...] = (OSError,)
    """What is raised when the counters cannot be asked. `TimeoutError` is an `OSError`."""

    async def admit(self, call: ToolCall) -> GateLease:
        """Raises: BudgetExceeded, RateLimited, LimitsUnavailable."""
        if self.counts_here:
            return await self._admit(call)
        try:
            with anyio.fail_after(ADMIT_SECONDS):
                return await self._admit(call)
        except self.counters_away as fault:
            log.warning("limits_unavailable", call_id=call.call_id, fault=type(fault).__name__)
            raise LimitsUnavailable(
                "calls cannot be counted now, so none is run",
                rule_id="limits.unavailable",
                retry_after_seconds=_RETRY_SECONDS,
            ) from fault

    async def _admit(self, call: ToolCall) -> GateLease:
        limits = self.rules.of(call.principal.subject, call.tool)
        # The budget goes first because of its precedence; and of what is taken, first what can be given back.
        task = await self.budgets.open(call, limits.budget)
        lease = GateLease(
            gate=self,
            call_id=call.call_id,
            task=task,
            place=f"{subject_key(call.principal.subject)}/{call.tool}",
            lease_id=self.new_id(),
        )
        try:
            await self._take_place(lease, call.tool, limits)
            await self.windows.take(call, limits)
        except BaseException:
            # Also when cancelled between the request for a place and its answer.
            with suppress(*self.counters_away), anyio.move_on_after(_GIVE_BACK_SECONDS, shield=True):
                await lease.give_back()
            raise
        return lease

    async def _take_place(self, lease: GateLease, tool: str, limits: CallLimits) -> None:
        seconds = await self.places.take(lease.place, lease.lease_id, limit=limits.concurrent_calls)
        if seconds:
            raise RateLimited(
                f"{tool}: {limits.concurrent_calls} calls at one time are allowed, and so many run now",
                rule_id="limits.concurrency",
                retry_after_seconds=seconds,
            )


@dataclass(slots=True, kw_only=True)
class GateLease:
    """One admitted call."""

    gate: LimitsGate
    call_id: str
    task: TaskBudget
    place: str
    lease_id: str
    ran_seconds: float = 0.0

    def running(self, most_seconds: float) -> AbstractAsyncContextManager[None]:
        """Raises: BudgetExceeded."""
        return self._watched() if self.task.seconds_left <= most_seconds else _Timed(self)

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Raises: BudgetExceeded."""
        clock = self.gate.clock
        began = clock.monotonic()
        fault: BrowserShellError | None = None
        with anyio.CancelScope() as scope:
            scope.deadline = anyio.current_time() + self.task.seconds_left
            try:
                yield
            except BrowserShellError as error:
                if not scope.cancel_called:
                    raise
                fault = error
            finally:
                self.ran_seconds += clock.monotonic() - began
        if scope.cancelled_caught or fault is not None:
            exceeded = exceeded_while_running(self.task, self.ran_seconds)
            raise foremost(exceeded, fault) if fault is not None else exceeded

    async def settle(self, result: CommandResult | None) -> None:
        """Never raises: what was done is done, and a place that cannot be given back falls free by itself."""
        if self.gate.counts_here:
            await self._settle(result)
            return
        with anyio.move_on_after(SETTLE_SECONDS, shield=True) as deadline:
            try:
                await self._settle(result)
            except self.gate.counters_away as fault:
                log.warning("limits_not_settled", call_id=self.call_id, fault=type(fault).__name__)
        if deadline.cancelled_caught:
            log.warning("limits_not_settled", call_id=self.call_id, fault="too slow")

    async def _settle(self, result: CommandResult | None) -> None:
        await self.give_back()
        await self.gate.budgets.charge(self.task, ran_seconds=self.ran_seconds, result=result)

    async def give_back(self) -> None:
        await self.gate.places.give_back(self.place, self.lease_id)


@dataclass(slots=True)
class _Timed:
    """A run whose budget lasts longer than it can."""

    lease: GateLease
    began: float = 0.0

    async def __aenter__(self) -> None:
        self.began = self.lease.gate.clock.monotonic()

    async def __aexit__(self, *_: object) -> None:
        self.lease.ran_seconds += self.lease.gate.clock.monotonic() - self.began
