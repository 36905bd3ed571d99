"""The audit report: one HTML page without scripts and requests. All text from the log is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from browser_shell.audit.query import Entry
from browser_shell.audit.report import charts
from browser_shell.audit.report.summary import Summary, percentile, summarise
from browser_shell.audit.verify import Verdict

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
_OUTCOMES = ("ok", "refused", "failed")
_COLUMNS = {
    "#seq": "seq",
    "time": "time",
    "kind": "kind",
    "subject": "subject",
    "session": "session_id",
    "call": "call_id",
    "tool": "tool",
    "command": "subcommand",
    "host": "host",
    "rule": "rule_id",
    "error": "error",
    "#ms": "duration_ms",
}
"""Members of the latest records, by title."""


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
            charts.timeline(summary.calls),
            "<h2>Latency over time</h2>",
            _legend(("median", "--p50"), ("95th percentile", "--p95")),
            charts.latency(summary.calls),
            "<h2>Refusals by rule</h2>",
            charts.bars(summary.refusals),
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
        [_utc(entry.text(name)) if name == "time" else entry.text(name) for name in _COLUMNS.values()]
        for entry in reversed(summary.latest)
    ]
    return _table(list(_COLUMNS), rows)


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
