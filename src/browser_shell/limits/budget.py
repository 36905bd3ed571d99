"""The budget of a task: how often a call that fails may be repeated, and for how long calls may run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import BudgetExceeded, ErrorCode
from browser_shell.core.results import CommandResult
from browser_shell.limits.counters import Counters
from browser_shell.limits.keys import fingerprint, task_key
from browser_shell.policy.document import GovernanceBudget

_TRY_LATER_EXIT = ErrorCode.RATE_LIMITED.exit_code
_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBudget:
    """The budget of one call's task, as it was when the call came."""

    budget: GovernanceBudget
    elapsed_key: str
    failures_key: str
    failures: int
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetBook:
    """What tasks have used up. A budget begins with its first use and lasts for one window."""

    counters: Counters
    now: Callable[[], float]
    """The clock of the counters' `get_expiry`."""

    async def open(self, call: ToolCall, budget: GovernanceBudget) -> TaskBudget:
        """`close` is always within it: whoever may do nothing more has to be able to let go. Raises: BudgetExceeded."""
        task = task_key(call)
        failures_key, elapsed_key = f"{task}/failures/{fingerprint(call)}", f"{task}/elapsed"
        failures = await self.counters.get(failures_key)
        if failures > budget.max_retries and not call.ends_session:
            raise await self._exceeded(
                f"this call has failed {failures} times; after {budget.max_retries} repetitions it is not run again. "
                "Do something else, or try",
                rule_id="limits.budget.retries",
                key=failures_key,
                budget=budget,
            )
        elapsed_seconds = await self.counters.get(elapsed_key) / _MILLISECONDS
        if elapsed_seconds >= budget.elapsed_seconds and not call.ends_session:
            raise await self._exceeded(
                f"the {budget.elapsed_seconds} s of execution that this task has are used up; try",
                rule_id="limits.budget.elapsed",
                key=elapsed_key,
                budget=budget,
            )
        return TaskBudget(
            budget=budget,
            elapsed_key=elapsed_key,
            failures_key=failures_key,
            failures=failures,
            seconds_left=inf if call.ends_session else budget.elapsed_seconds - elapsed_seconds,
        )

    async def charge(self, task: TaskBudget, *, ran_seconds: float, result: CommandResult | None) -> None:
        """`result` is None for a call that was cancelled: its time counts, and it neither failed nor succeeded."""
        window_seconds = task.budget.window_seconds
        if ran_seconds > 0:
            await self.counters.incr(
                task.elapsed_key, window_seconds, amount=max(1, round(ran_seconds * _MILLISECONDS))
            )
        if result is None:
            return
        if result.error is None:
            if task.failures:
                await self.counters.clear(task.failures_key)
        # Whoever is told to come later, and does, repeats nothing that failed.
        elif result.error.exit_code != _TRY_LATER_EXIT:
            await self.counters.incr(task.failures_key, window_seconds)

    async def _exceeded(self, message: str, *, rule_id: str, key: str, budget: GovernanceBudget) -> BudgetExceeded:
        seconds = await self._seconds_left(key, budget)
        return BudgetExceeded(f"{message} again in {seconds} s", rule_id=rule_id, retry_after_seconds=seconds)

    async def _seconds_left(self, key: str, budget: GovernanceBudget) -> int:
        # Only a hint for the caller: the counter itself decides when it ends.
        seconds = await self.counters.get_expiry(key) - self.now()
        return min(budget.window_seconds, max(1, ceil(seconds)))


def exceeded_while_running(task: TaskBudget, ran_seconds: float) -> BudgetExceeded:
    """For a call that was stopped because nothing was left for it."""
    return BudgetExceeded(
        f"stopped after {ran_seconds:.1f} s: the {task.budget.elapsed_seconds} s of execution that this task has are "
        "used up",
        rule_id="limits.budget.elapsed",
        retry_after_seconds=task.budget.window_seconds,
    )
