"""The budget of a task: how often a failing call may be repeated, and how long its calls may run in total."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

from browser_shell.core.calls import CommandResult, ToolCall
from browser_shell.core.errors import BudgetExceeded, ErrorCode
from browser_shell.limits.counters import Counters, digest, subject_key
from browser_shell.policy.document import GovernanceBudget

_TRY_LATER_EXIT = ErrorCode.RATE_LIMITED.exit_code
_MILLISECONDS = 1000
_IGNORED_ARGUMENTS = frozenset({"timeout_sec"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBudget:
    """The budget of one call's task when the call arrived."""

    budget: GovernanceBudget
    elapsed_key: str
    document_key: str
    failures_key: str
    failures: int
    seconds_left: float
    ends_session: bool

    def exceeded_after(self, seconds: float) -> BudgetExceeded:
        """Return the error for a call that was stopped because the time of its task ran out."""
        return BudgetExceeded(
            f"stopped after {seconds:.1f} s: the {self.budget.elapsed_seconds} s of execution that this task has are "
            "used up",
            rule_id="limits.budget.elapsed",
            retry_after_seconds=self.budget.window_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBudgets:
    """The used budgets of all tasks. A budget starts with its first use and lasts for one window.

    Failures are counted for the document that the session shows: the same words may work in the next one.
    """

    counters: Counters
    now: Callable[[], float]
    """The clock of `Counters.get_expiry`."""

    async def open(self, call: ToolCall, budget: GovernanceBudget) -> TaskBudget:
        """Look up the budget of a call. `close` is always allowed, so that a session can end.

        Raises: BudgetExceeded.
        """
        # A tool without sessions has one task for each subject.
        task = f"{subject_key(call.principal.subject)}/{call.tool}/{call.session_id}"
        document_key, elapsed_key = f"{task}/document", f"{task}/elapsed"
        failures_key = f"{task}/failures/{await self.counters.get(document_key)}/{_fingerprint(call)}"
        failures = await self.counters.get(failures_key)
        if failures > budget.max_retries and not call.ends_session:
            raise await self._exceeded(
                f"this call has failed {failures} times on this page; after {budget.max_retries} repetitions it is not "
                "run again. Do something else, or try",
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
            document_key=document_key,
            failures_key=failures_key,
            failures=failures,
            seconds_left=inf if call.ends_session else budget.elapsed_seconds - elapsed_seconds,
            ends_session=call.ends_session,
        )

    async def charge(self, task: TaskBudget, *, ran_seconds: float, result: CommandResult | None) -> None:
        """Count the time and the failure of a call. A cancelled call (`result` is None) counts only its time."""
        window_seconds = task.budget.window_seconds
        if ran_seconds > 0:
            milliseconds = max(1, round(ran_seconds * _MILLISECONDS))
            await self.counters.incr(task.elapsed_key, window_seconds, amount=milliseconds)
        if result is None:
            return
        if result.error is None:
            if result.shows_new_document or task.ends_session:
                await self._forget_failures(task)
            elif task.failures:
                await self.counters.clear(task.failures_key)
        # A call that was refused until later did not fail, so repeating it is not a retry.
        elif result.error.exit_code != _TRY_LATER_EXIT:
            await self.counters.incr(task.failures_key, window_seconds)

    async def _forget_failures(self, task: TaskBudget) -> None:
        """Give the document another number, which is part of the keys of its failures."""
        # The first number is the time, so that no number comes again after the counter has expired.
        is_first = await self.counters.get(task.document_key) == 0
        amount = max(1, int(self.now() * _MILLISECONDS)) if is_first else 1
        await self.counters.incr(task.document_key, task.budget.window_seconds, amount=amount)

    async def _exceeded(self, message: str, *, rule_id: str, key: str, budget: GovernanceBudget) -> BudgetExceeded:
        # Only a hint for the caller: the counter itself decides when it expires.
        seconds_left = await self.counters.get_expiry(key) - self.now()
        seconds = min(budget.window_seconds, max(1, ceil(seconds_left)))
        return BudgetExceeded(f"{message} again in {seconds} s", rule_id=rule_id, retry_after_seconds=seconds)


def _fingerprint(call: ToolCall) -> str:
    """Hash the arguments, except the timeout. Equal hashes mean that a call is repeated.

    A valid session id is part of the task's key. An invalid one stays in the hash, so that each counts separately.
    """
    arguments = call.arguments
    if isinstance(arguments, dict):
        ignored = _IGNORED_ARGUMENTS | ({"session_id"} if call.session_id else set())
        arguments = {name: value for name, value in arguments.items() if name not in ignored}
    return digest(json.dumps(arguments, sort_keys=True).encode("ascii"))
