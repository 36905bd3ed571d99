"""Charts as inline SVG. Text from the log is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, log10

from browser_shell.audit.report.summary import FinishedCall, percentile

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 900, 180, 60, 24
_COLUMNS = 60
_OUTCOMES = ("ok", "refused", "failed")
_MAX_BARS = 20
_BAR_HEIGHT = 22


def timeline(calls: Sequence[FinishedCall]) -> str:
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


def latency(calls: Sequence[FinishedCall]) -> str:
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


def bars(counts: Counter[str]) -> str:
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
    step = max(1.0, end - start) / _COLUMNS
    columns: list[list[FinishedCall]] = [[] for _ in range(_COLUMNS)]
    for call in calls:
        columns[min(_COLUMNS - 1, int((call.at - start) / step))].append(call)
    return start, step, columns


def _middle(number: int) -> float:
    return _LEFT + (number + 0.5) * (_WIDTH - _LEFT) / _COLUMNS


def _bar(number: int, below: int, count: int, highest: int, outcome: str, time: str) -> str:
    scale, width = _HEIGHT / highest, (_WIDTH - _LEFT) / _COLUMNS
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
    last = _format_time(start + _COLUMNS * step)
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
