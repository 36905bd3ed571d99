"""What a log says, in figures: calls by session, refusals by rule, latency, and what happened when."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from browser_shell.audit.query import Entry
from browser_shell.core.records import RecordKind

_MOST_EVENTS = 400
# Not MCP_COMMAND_BLOCKED: each has a POLICY_BLOCKED beside it.
_REFUSALS = frozenset({RecordKind.POLICY_BLOCKED.value, RecordKind.MCP_NETWORK_BLOCKED.value})
_NEVER_RAN = frozenset(
    {"INVALID_ARGUMENTS", "POLICY_BLOCKED", "NAME_NOT_RESOLVED", "SESSION_LIMIT", "HUMAN_IN_CONTROL", "HOOK_FAILED"}
    | {"RATE_LIMITED", "BUDGET_EXCEEDED", "LIMITS_UNAVAILABLE", "AUDIT_UNAVAILABLE"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """The end of one call."""

    at: float
    duration_ms: float
    outcome: str
    """`ok`, `refused` or `failed`."""


@dataclass(slots=True, kw_only=True)
class SessionSummary:
    """One session of one subject."""

    outcomes: Counter[str] = field(default_factory=Counter)
    first: str = ""
    last: str = ""
    durations_ms: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Summary:
    """Everything that the report shows."""

    records: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """By rule."""
    sessions: dict[tuple[str, str], SessionSummary] = field(default_factory=dict)
    calls: list[FinishedCall] = field(default_factory=list)
    events: deque[Entry] = field(default_factory=lambda: deque(maxlen=_MOST_EVENTS))
    """The latest ones."""
    first: str = ""
    last: str = ""


def summarise(entries: Iterable[Entry]) -> Summary:
    """One pass over records."""
    summary = Summary()
    for entry in entries:
        kind, time = entry.word("kind"), entry.word("time")
        summary.records += 1
        summary.kinds[kind] += 1
        summary.first, summary.last = summary.first or time, time
        summary.events.append(entry)
        if kind in _REFUSALS:
            refusals = int(entry.number("suppressed_records") or 1)
            summary.refusals[entry.word("rule_id") or "no rule named"] += refusals
        if kind == RecordKind.TOOL_FINISHED.value:
            _count_call(summary, entry, time)
    return summary


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of all values do not exceed; 0 when there are none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def seconds_of(time: str) -> float | None:
    """Seconds since the epoch; None for what is not a time."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None


def _count_call(summary: Summary, entry: Entry, time: str) -> None:
    error, duration_ms, at = entry.word("error"), entry.number("duration_ms"), seconds_of(time)
    outcome = "ok" if not error else "refused" if error in _NEVER_RAN else "failed"
    session = summary.sessions.setdefault((entry.word("subject"), entry.word("session_id")), SessionSummary())
    session.outcomes[outcome] += 1
    session.first, session.last = session.first or time, time
    if duration_ms is not None and at is not None:
        session.durations_ms.append(duration_ms)
        summary.calls.append(FinishedCall(at=at, duration_ms=duration_ms, outcome=outcome))
