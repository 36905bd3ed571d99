"""Figures about a log: calls by session, refusals by rule, durations."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from browser_shell.audit.query import Entry
from browser_shell.core.records import RecordKind

_MAX_RECORDS = 400
# MCP_COMMAND_BLOCKED is not counted, because a POLICY_BLOCKED accompanies it.
_REFUSALS = frozenset({RecordKind.POLICY_BLOCKED.value, RecordKind.MCP_NETWORK_BLOCKED.value})
_NOT_RUN = frozenset(
    {"INVALID_ARGUMENTS", "POLICY_BLOCKED", "SESSION_LIMIT", "HUMAN_IN_CONTROL", "HOOK_FAILED"}
    | {"RATE_LIMITED", "BUDGET_EXCEEDED", "LIMITS_UNAVAILABLE", "AUDIT_UNAVAILABLE"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    at: float
    """Seconds since the epoch."""
    duration_ms: float
    outcome: str
    """`ok`, `refused` or `failed`."""


@dataclass(slots=True, kw_only=True)
class SessionSummary:
    outcomes: Counter[str] = field(default_factory=Counter)
    first: str = ""
    last: str = ""
    durations_ms: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Summary:
    refusals: Counter[str] = field(default_factory=Counter)
    """By rule."""
    sessions: dict[tuple[str, str], SessionSummary] = field(default_factory=dict)
    """By subject and session id."""
    calls: list[FinishedCall] = field(default_factory=list)
    latest: deque[Entry] = field(default_factory=lambda: deque(maxlen=_MAX_RECORDS))
    first: str = ""
    last: str = ""


def summarise(entries: Iterable[Entry]) -> Summary:
    summary = Summary()
    for entry in entries:
        kind, time = entry.text("kind"), entry.text("time")
        summary.first, summary.last = summary.first or time, time
        summary.latest.append(entry)
        if kind in _REFUSALS:
            count = int(entry.number("suppressed_records") or 1)
            summary.refusals[entry.text("rule_id") or "no rule"] += count
        if kind == RecordKind.TOOL_FINISHED.value:
            _add_call(summary, entry, time)
    return summary


def percentile(values: list[float], share: float) -> float:
    """Return the value that `share` of all values do not exceed; 0 for no values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _add_call(summary: Summary, entry: Entry, time: str) -> None:
    error, duration_ms = entry.text("error"), entry.number("duration_ms")
    outcome = "ok" if not error else "refused" if error in _NOT_RUN else "failed"
    session = summary.sessions.setdefault((entry.text("subject"), entry.text("session_id")), SessionSummary())
    session.outcomes[outcome] += 1
    session.first, session.last = session.first or time, time
    try:
        at = datetime.fromisoformat(time).timestamp()
    except ValueError:
        return
    if duration_ms is not None:
        session.durations_ms.append(duration_ms)
        summary.calls.append(FinishedCall(at=at, duration_ms=duration_ms, outcome=outcome))
