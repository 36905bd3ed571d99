"""How much each subject may use each tool: the `limits` section of the policy file, and what it means for one call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

GovernedTool: TypeAlias = Literal["browser-shell", "run_playwright", "run_pytest"]
LimitedSubject: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]

CallsPerMinute: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]
CallsPerDay: TypeAlias = Annotated[int, Field(ge=1, le=10_000_000)]
ConcurrentCalls: TypeAlias = Annotated[int, Field(ge=1, le=1_000)]
Retries: TypeAlias = Annotated[int, Field(ge=0, le=10_000)]
Elapsed: TypeAlias = Annotated[int, Field(ge=1, le=86_400)]
BudgetWindow: TypeAlias = Annotated[int, Field(ge=1, le=86_400)]


_JOBS_AT_ONCE = 2
"""A run takes a processor and a gigabyte, so few at one time are the default, whatever browser calls have."""
_JOB_TOOLS = frozenset({"run_playwright", "run_pytest"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernanceBudget:
    """What one task may use up: repetitions of a call that fails, and time of execution."""

    max_retries: int
    elapsed_seconds: int
    window_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """What holds for one subject and one tool."""

    calls_per_minute: int
    calls_per_day: int
    concurrent_calls: int
    budget: GovernanceBudget


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class BudgetOverride(_Section):
    """Values of a budget that differ for some tool or subject; null keeps what is more general."""

    max_retries: Retries | None = None
    """How often a call that fails may be repeated unchanged."""
    elapsed_seconds: Elapsed | None = None
    """Seconds of execution in one window."""
    window_seconds: BudgetWindow | None = None
    """How long a budget lasts, from its first use."""

    def applied_to(self, budget: GovernanceBudget) -> GovernanceBudget:
        return replace(budget, **self.model_dump(exclude_none=True))


class LimitsOverride(_Section):
    """Values that differ for some tool or subject; null keeps what is more general."""

    calls_per_minute: CallsPerMinute | None = None
    """Rate."""
    calls_per_day: CallsPerDay | None = None
    """Quota."""
    concurrent_calls: ConcurrentCalls | None = None
    """Calls at one time."""
    budget: BudgetOverride = BudgetOverride()
    """Of one task."""

    def applied_to(self, limits: CallLimits) -> CallLimits:
        values = self.model_dump(exclude_none=True, exclude={"budget"})
        return replace(limits, **values, budget=self.budget.applied_to(limits.budget))


class BudgetSection(_Section):
    """What one task may use up. A task is a session of `browser-shell`, or all runs of another tool."""

    max_retries: Retries = 10
    """How often a call that fails may be repeated unchanged before it is refused."""
    elapsed_seconds: Elapsed = 1_800
    """Seconds of execution in one window."""
    window_seconds: BudgetWindow = 3_600
    """How long a budget lasts, from its first use."""


class LimitsSection(_Section):
    """How much a subject may use a tool. Every number counts for one subject and one tool. None can be unlimited."""

    calls_per_minute: CallsPerMinute = 3_000
    """Rate: calls in a sliding minute."""
    calls_per_day: CallsPerDay = 200_000
    """Quota: calls in sliding 24 hours."""
    concurrent_calls: ConcurrentCalls = 8
    """Calls at one time; of `run_playwright` and `run_pytest` at most 2, unless they or the subject are named below."""
    budget: BudgetSection = BudgetSection()
    """What one task may use up."""
    tools: dict[GovernedTool, LimitsOverride] = Field(default_factory=dict)
    """Other values for a tool."""
    subjects: dict[LimitedSubject, LimitsOverride] = Field(default_factory=dict)
    """Other values for the subject of a token. They win over those for a tool."""

    def of(self, subject: str, tool: str) -> CallLimits:
        """What holds for this subject and tool: the general values, then the tool's own, then the subject's own."""
        limits = CallLimits(
            calls_per_minute=self.calls_per_minute,
            calls_per_day=self.calls_per_day,
            concurrent_calls=min(self.concurrent_calls, _JOBS_AT_ONCE) if tool in _JOB_TOOLS else self.concurrent_calls,
            budget=GovernanceBudget(
                max_retries=self.budget.max_retries,
                elapsed_seconds=self.budget.elapsed_seconds,
                window_seconds=self.budget.window_seconds,
            ),
        )
        for name, override in self.tools.items():
            limits = override.applied_to(limits) if name == tool else limits
        own = self.subjects.get(subject)
        return own.applied_to(limits) if own is not None else limits
