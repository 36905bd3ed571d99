"""One page about a log that a person can read: no scripts, no requests, everything from the log escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from browser_shell.audit.query import Entry
from browser_shell.audit.report import charts
from browser_shell.audit.report.summary import Summary, percentile, summarise
from browser_shell.audit.verify import Verdict

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--paper:#fff;--line:#d5dbe3;--quiet:#5b6675;--ok:#2f8f5b;
--refused:#c77700;--failed:#c0392b;--p50:#2563c9;--p95:#8a4fc4}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--paper:#14181f;--line:#333c49;--quiet:#98a3b3;--ok:#4fbf83;
--refused:#e6a23c;--failed:#ec6a5c;--p50:#6ea2f5;--p95:#b58ae6}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1000px;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .5rem}.quiet{color:var(--quiet)}
.verdict{border-left:6px solid var(--ok);padding:.6rem 1rem;margin:1rem 0;border-radius:4px;
background:color-mix(in srgb,var(--ok) 10%,transparent)}
.verdict.bad{border-color:var(--failed);background:color-mix(in srgb,var(--failed) 10%,transparent)}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13px}th,td{text-align:left;
padding:4px 10px 4px 0;border-bottom:1px solid var(--line);white-space:nowrap}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
.figures{display:flex;gap:2rem;flex-wrap:wrap;margin:1rem 0}.figures b{display:block;font-size:1.5rem;
font-variant-numeric:tabular-nums}
svg{width:100%;height:auto}svg text{font-size:11px;fill:var(--quiet)}svg .grid{stroke:var(--line)}
rect.ok{fill:var(--ok)}rect.refused{fill:var(--refused)}rect.failed{fill:var(--failed)}
polyline{fill:none;stroke-width:1.5}polyline.p50{stroke:var(--p50)}polyline.p95{stroke:var(--p95)}
circle.p50{fill:var(--p50)}circle.p95{fill:var(--p95)}
.key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 1em}
"""
_MOST_SESSIONS = 200


def render_report(entries: Iterable[Entry], verdict: Verdict, *, title: str, made_at: str) -> str:
    """The page, as one string."""
    summary = summarise(entries)
    durations = [call.duration_ms for call in summary.calls]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            # The page needs nothing from anywhere, so it may fetch nothing, whatever is in it.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f'<h1>{escape(title)}</h1><p class="quiet">{escape(summary.first or "no records")} to '
            f"{escape(summary.last)} · made {escape(made_at)}</p>",
            _verdict(verdict),
            _figures(summary, durations),
            "<h2>Timeline</h2>",
            _colours(("ok", "--ok"), ("refused", "--refused"), ("failed", "--failed")),
            charts.timeline(summary.calls),
            "<h2>Latency</h2>",
            _colours(("median", "--p50"), ("95th percentile", "--p95")),
            charts.latency(summary.calls),
            "<h2>Refusals by rule</h2>",
            charts.bars(summary.refusals),
            "<h2>Calls per session</h2>",
            _sessions(summary),
            f"<h2>Latest {len(summary.events)} records</h2>",
            _events(list(summary.events)),
            "</body></html>\n",
        ]
    )


def _verdict(verdict: Verdict) -> str:
    signed = verdict.last_signed
    facts = f"{verdict.records} records in {verdict.files} files, {verdict.checkpoints} signed checkpoints"
    if verdict.sound and signed is not None:
        rest = f"; the last {verdict.unsigned_records} records are linked but not signed yet"
        return (
            '<div class="verdict"><b>The log is whole.</b> '
            f"{facts}; the last is number {signed.seq} of {escape(signed.time)}, key {escape(signed.key)}"
            f"{rest if verdict.unsigned_records else ''}.</div>"
        )
    found = "".join(f"<li>{escape(str(problem))}</li>" for problem in verdict.problems) or "<li>no checkpoint</li>"
    return f'<div class="verdict bad"><b>The log was changed or cut.</b> {facts}.<ul>{found}</ul></div>'


def _figures(summary: Summary, durations: list[float]) -> str:
    figures = [
        ("calls", len(summary.calls)),
        ("refused", sum(call.outcome == "refused" for call in summary.calls)),
        ("failed", sum(call.outcome == "failed" for call in summary.calls)),
        ("sessions", len(summary.sessions)),
        ("median ms", round(percentile(durations, 0.5), 1)),
        ("95 % ms", round(percentile(durations, 0.95), 1)),
    ]
    return '<div class="figures">' + "".join(f"<div><b>{value}</b>{name}</div>" for name, value in figures) + "</div>"


def _colours(*names: tuple[str, str]) -> str:
    return (
        '<p class="quiet key">'
        + "".join(f'<i style="background:var({variable})"></i>{name}' for name, variable in names)
        + "</p>"
    )


def _sessions(summary: Summary) -> str:
    head = ("subject", "session", "#calls", "#ok", "#refused", "#failed", "#median ms", "#95 % ms", "first", "last")
    rows = [
        (
            subject,
            session_id or "-",
            str(session.outcomes.total()),
            *(str(session.outcomes[outcome]) for outcome in ("ok", "refused", "failed")),
            f"{percentile(session.durations_ms, 0.5):.1f}",
            f"{percentile(session.durations_ms, 0.95):.1f}",
            session.first,
            session.last,
        )
        for (subject, session_id), session in summary.sessions.items()
    ]
    rows.sort(key=lambda row: -int(row[2]))
    more = len(rows) - _MOST_SESSIONS
    note = f'<p class="quiet">{more} more sessions are not shown.</p>' if more > 0 else ""
    return _table(head, rows[:_MOST_SESSIONS]) + note


def _events(events: Sequence[Entry]) -> str:
    names = (
        "seq",
        "time",
        "kind",
        "subject",
        "session_id",
        "call_id",
        "tool",
        "subcommand",
        "host",
        "rule_id",
        "error",
    )
    head = ("#seq", "time", "kind", "subject", "session", "call", "tool", "what", "host", "rule", "error", "#ms")
    rows = [(*(entry.word(name) for name in names), entry.word("duration_ms")) for entry in reversed(events)]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A column whose title begins with # holds numbers."""
    classes = [' class="number"' if name.startswith("#") else "" for name in head]
    titles = "".join(f"<th{style}>{escape(name.lstrip('#'))}</th>" for name, style in zip(head, classes, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{style}>{escape(cell)}</td>" for cell, style in zip(row, classes, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'
