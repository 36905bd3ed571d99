"""The audit report: one HTML page without scripts and requests. All text from the log is escaped."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from math import ceil, log10

from browser_shell.audit.query import Entry
from browser_shell.audit.verify import Verdict
from browser_shell.core.records import RecordKind

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--paper:#fff;--line:#d5dbe3;--muted:#5b6675;--ok:#2f8f5b;
--refused:#c77700;--failed:#c0392b;--p50:#2563c9;--p95:#8a4fc4}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--paper:#14181f;--line:#333c49;--muted:#98a3b3;--ok:#4fbf83;
--refused:#e6a23c;--failed:#ec6a5c;--p50:#6ea2f5;--p95:#b58ae6}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1000px;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .5rem}.muted{color:var(--muted)}
.verdict{border-left:6px solid var(--ok);padding:.6rem 1rem;margin:1rem 0;border-radius:4px;
background:color-mix(in srgb,var(--ok) 10%,transparent)}
.verdict.bad{border-color:var(--failed);background:color-mix(in srgb,var(--failed) 10%,transparent)}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13px}th,td{text-align:left;
padding:4px 10px 4px 0;border-bottom:1px solid var(--line);white-space:nowrap}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
.figures{display:flex;gap:2rem;flex-wrap:wrap;margin:1rem 0}.figures b{display:block;font-size:1.5rem;
font-variant-numeric:tabular-nums}
svg{width:100%;height:auto}svg text{font-size:11px;fill:var(--muted)}svg .grid{stroke:var(--line)}
rect.ok{fill:var(--ok)}rect.refused{fill:var(--refused)}rect.failed{fill:var(--failed)}
polyline{fill:none;stroke-width:1.5}polyline.p50{stroke:var(--p50)}polyline.p95{stroke:var(--p95)}
circle.p50{fill:var(--p50)}circle.p95{fill:var(--p95)}
.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 1em}
"""
_MAX_SESSIONS = 200
_MAX_RECORDS = 400
# MCP_COMMAND_BLOCKED is not counted, because a POLICY_BLOCKED accompanies it.
_REFUSALS = frozenset({RecordKind.POLICY_BLOCKED.value, RecordKind.MCP_NETWORK_BLOCKED.value})
_NOT_RUN = frozenset(
    {"INVALID_ARGUMENTS", "POLICY_BLOCKED", "SESSION_LIMIT", "HUMAN_IN_CONTROL", "HOOK_FAILED"}
    | {"RATE_LIMITED", "BUDGET_EXCEEDED", "LIMITS_UNAVAILABLE", "AUDIT_UNAVAILABLE"}
    | {"NOT_RUN"}  # a step after or before another one that failed or was refused
)
_OUTCOMES = ("ok", "refused", "failed")
_RECORD_COLUMNS = {
    "#seq": "seq",
    "time": "time",
    "kind": "kind",
    "subject": "subject",
    "session": "session_id",
    "call": "call_id",
    "tool": "tool",
    "#step": "step",
    "command": "subcommand",
    "host": "host",
    "rule": "rule_id",
    "error": "error",
    "#ms": "duration_ms",
}
"""Members of the latest records, by title."""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 900, 180, 60, 24
_CHART_COLUMNS = 60
_MAX_BARS = 20
_BAR_HEIGHT = 22


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


def render_report(entries: Iterable[Entry], verdict: Verdict, *, title: str, created_at: str) -> str:
    summary = summarise(entries)
    period = f"{_utc(summary.first)} to {_utc(summary.last)} UTC" if summary.first else "no records"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            # The page is self-contained, so it may fetch nothing.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f'<h1>{escape(title)}</h1><p class="muted">{escape(period)} · created {escape(_utc(created_at))} UTC</p>',
            _verdict(verdict),
            _figures(summary),
            "<h2>Calls over time</h2>",
            _legend(("ok", "--ok"), ("refused", "--refused"), ("failed", "--failed")),
            _timeline(summary.calls),
            "<h2>Latency over time</h2>",
            _legend(("median", "--p50"), ("95th percentile", "--p95")),
            _latency(summary.calls),
            "<h2>Refusals by rule</h2>",
            _bars(summary.refusals),
            "<h2>Sessions</h2>",
            _sessions(summary),
            f"<h2>Latest {len(summary.latest)} records</h2>",
            _latest_records(summary),
            "</body></html>\n",
        ]
    )


def _verdict(verdict: Verdict) -> str:
    signed = verdict.last_signed
    counts = (
        f"{_count(verdict.records, 'record')} in {_count(verdict.files, 'file')}, "
        f"{_count(verdict.checkpoints, 'signed checkpoint')}"
    )
    if verdict.sound and signed is not None:
        unsigned = verdict.unsigned_records
        pending = f" The last {_count(unsigned, 'record')} {'is' if unsigned == 1 else 'are'} not signed yet."
        return (
            f'<div class="verdict"><b>The log is intact.</b> {counts}. Signed up to record {signed.seq} '
            f"({escape(_utc(signed.time))} UTC) with key {escape(signed.key)}.{pending if unsigned else ''}</div>"
        )
    problems = (
        "".join(f"<li>{escape(str(problem))}</li>" for problem in verdict.problems) or "<li>no signed checkpoint</li>"
    )
    return f'<div class="verdict bad"><b>The log was changed or cut.</b> {counts}.<ul>{problems}</ul></div>'


def _figures(summary: Summary) -> str:
    durations = [call.duration_ms for call in summary.calls]
    figures = [
        ("calls", len(summary.calls)),
        ("refused", sum(call.outcome == "refused" for call in summary.calls)),
        ("failed", sum(call.outcome == "failed" for call in summary.calls)),
        ("sessions", len(summary.sessions)),
        ("median ms", round(percentile(durations, 0.5), 1)),
        ("p95 ms", round(percentile(durations, 0.95), 1)),
    ]
    return '<div class="figures">' + "".join(f"<div><b>{value}</b>{name}</div>" for name, value in figures) + "</div>"


def _legend(*colours: tuple[str, str]) -> str:
    items = "".join(f'<i style="background:var({variable})"></i>{name}' for name, variable in colours)
    return f'<p class="muted legend">{items}</p>'


def _sessions(summary: Summary) -> str:
    head = ("subject", "session", "#calls", "#ok", "#refused", "#failed", "#median ms", "#p95 ms", "first", "last")
    ordered = sorted(summary.sessions.items(), key=lambda item: -item[1].outcomes.total())
    rows = [
        (
            subject,
            session_id or "-",
            str(session.outcomes.total()),
            *(str(session.outcomes[outcome]) for outcome in _OUTCOMES),
            f"{percentile(session.durations_ms, 0.5):.1f}",
            f"{percentile(session.durations_ms, 0.95):.1f}",
            _utc(session.first),
            _utc(session.last),
        )
        for (subject, session_id), session in ordered[:_MAX_SESSIONS]
    ]
    hidden = len(ordered) - len(rows)
    note = f'<p class="muted">{_count(hidden, "more session")} not shown.</p>' if hidden else ""
    return _table(head, rows) + note


def _latest_records(summary: Summary) -> str:
    rows = [
        [_utc(entry.text(name)) if name == "time" else entry.text(name) for name in _RECORD_COLUMNS.values()]
        for entry in reversed(summary.latest)
    ]
    return _table(list(_RECORD_COLUMNS), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table. Columns whose title starts with # contain numbers."""
    classes = [' class="number"' if name.startswith("#") else "" for name in head]
    titles = "".join(f"<th{style}>{escape(name.lstrip('#'))}</th>" for name, style in zip(head, classes, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{style}>{escape(cell)}</td>" for cell, style in zip(row, classes, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _utc(timestamp: str) -> str:
    """Shorten a timestamp of the log, which is always in UTC."""
    return timestamp.removesuffix("+00:00").replace("T", " ", 1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _timeline(calls: Sequence[FinishedCall]) -> str:
    """Calls over time, stacked by outcome."""
    if not calls:
        return _placeholder("no finished calls")
    start, step, columns = _group(calls)
    highest = max(map(len, columns))
    bars = []
    for number, column in enumerate(columns):
        counts, below = Counter(call.outcome for call in column), 0
        for outcome in _OUTCOMES:
            if counts[outcome]:
                time = _format_time(start + number * step)
                bars.append(_bar(number, below, counts[outcome], highest, outcome, time))
                below += counts[outcome]
    return _chart("calls over time", [*bars, _left_label(str(highest), 12), *_time_labels(start, step)])


def _latency(calls: Sequence[FinishedCall]) -> str:
    """Median and 95th percentile over time, on a logarithmic scale."""
    if not calls:
        return _placeholder("no finished calls")
    start, step, columns = _group(calls)
    decades = max(1, ceil(log10(max(10.0, *(call.duration_ms for call in calls)))))
    marks = []
    for power in range(decades + 1):
        y = _level(10.0**power, decades)
        marks.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        marks.append(_left_label(_milliseconds(10.0**power), y))
    for share, name in ((0.95, "p95"), (0.5, "p50")):
        points = [
            (_middle(number), _level(percentile([call.duration_ms for call in column], share), decades))
            for number, column in enumerate(columns)
            if column
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dots = "".join(f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)
        marks.append(f'<polyline class="{name}" points="{line}"/>{dots}')
    return _chart("latency over time", [*marks, *_time_labels(start, step)])


def _bars(counts: Counter[str]) -> str:
    """The highest counts as horizontal bars."""
    if not counts:
        return _placeholder("none")
    rows = counts.most_common(_MAX_BARS)
    highest = rows[0][1]
    marks = []
    for number, (name, count) in enumerate(rows):
        y = number * _BAR_HEIGHT
        marks.append(
            f'<text x="290" y="{y + 15}" text-anchor="end">{escape(name[:48])}</text>'
            f'<rect class="refused" x="300" y="{y + 3}" width="{max(2.0, count / highest * 520):.1f}" height="16"/>'
            f'<text x="{306 + count / highest * 520:.1f}" y="{y + 15}">{count}</text>'
        )
    height = len(rows) * _BAR_HEIGHT
    return f'<svg role="img" aria-label="refusals by rule" viewBox="0 0 {_WIDTH} {height}">{"".join(marks)}</svg>'


def _group(calls: Sequence[FinishedCall]) -> tuple[float, float, list[list[FinishedCall]]]:
    """Divide the time into columns. Return its start, the seconds of a column, and the calls of each column."""
    start, end = min(call.at for call in calls), max(call.at for call in calls)
    step = max(1.0, end - start) / _CHART_COLUMNS
    columns: list[list[FinishedCall]] = [[] for _ in range(_CHART_COLUMNS)]
    for call in calls:
        columns[min(_CHART_COLUMNS - 1, int((call.at - start) / step))].append(call)
    return start, step, columns


def _middle(number: int) -> float:
    return _LEFT + (number + 0.5) * (_WIDTH - _LEFT) / _CHART_COLUMNS


def _bar(number: int, below: int, count: int, highest: int, outcome: str, time: str) -> str:
    scale, width = _HEIGHT / highest, (_WIDTH - _LEFT) / _CHART_COLUMNS
    return (
        f'<rect class="{outcome}" x="{_LEFT + number * width:.1f}" y="{_HEIGHT - (below + count) * scale:.1f}" '
        f'width="{width - 1:.1f}" height="{count * scale:.1f}"><title>{time}: {count} {outcome}</title></rect>'
    )


def _level(milliseconds: float, decades: int) -> float:
    return _HEIGHT - (_HEIGHT - 8) * log10(max(1.0, milliseconds)) / decades


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.0f} s"


def _left_label(text: str, y: float) -> str:
    return f'<text x="{_LEFT - 6}" y="{y:.1f}" text-anchor="end">{text}</text>'


def _time_labels(start: float, step: float) -> list[str]:
    y = _HEIGHT + _BOTTOM - 6
    last = _format_time(start + _CHART_COLUMNS * step)
    return [
        f'<text x="{_LEFT}" y="{y}">{_format_time(start)}</text>',
        f'<text x="{_WIDTH}" y="{y}" text-anchor="end">{last}</text>',
    ]


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _chart(name: str, marks: list[str]) -> str:
    height = _HEIGHT + _BOTTOM
    return f'<svg role="img" aria-label="{name}" viewBox="0 0 {_WIDTH} {height}">{"".join(marks)}</svg>'


def _placeholder(text: str) -> str:
    return f'<p class="muted">{text}</p>'
