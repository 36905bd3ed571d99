"""Charts as inline SVG. Every text in them is a number or a word of ours, or is escaped."""

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
_MOST_BARS = 20
_BAR_HEIGHT = 22


def timeline(calls: Sequence[FinishedCall]) -> str:
    """Calls over time, stacked by outcome."""
    if not calls:
        return _nothing("no finished calls")
    begin, step = _columns(calls)
    stacks = [Counter[str]() for _ in range(_COLUMNS)]
    for call in calls:
        stacks[_column(call.at, begin, step)][call.outcome] += 1
    most = max(stack.total() for stack in stacks)
    bars = []
    for number, stack in enumerate(stacks):
        below = 0
        for outcome in _OUTCOMES:
            if stack[outcome]:
                bars.append(_bar(number, below, stack[outcome], most, outcome, _when(begin + number * step)))
                below += stack[outcome]
    return _chart("calls over time", [*bars, _left_label(str(most), 12), *_time_labels(begin, step)])


def latency(calls: Sequence[FinishedCall]) -> str:
    """Median and 95th percentile over time, on a logarithmic scale."""
    if not calls:
        return _nothing("no finished calls")
    begin, step = _columns(calls)
    columns: list[list[float]] = [[] for _ in range(_COLUMNS)]
    for call in calls:
        columns[_column(call.at, begin, step)].append(call.duration_ms)
    decades = max(1, ceil(log10(max(10.0, *(call.duration_ms for call in calls)))))
    marks = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{_level(10.0**power, decades):.1f}" '
        f'y2="{_level(10.0**power, decades):.1f}"/>'
        + _left_label(_milliseconds(10.0**power), _level(10.0**power, decades))
        for power in range(decades + 1)
    ]
    for share, name in ((0.95, "p95"), (0.5, "p50")):
        points = [
            f"{_middle(number):.1f},{_level(percentile(values, share), decades):.1f}"
            for number, values in enumerate(columns)
            if values
        ]
        dots = "".join(f'<circle class="{name}" cx="{x}" cy="{y}" r="2.5"/>' for x, y in (p.split(",") for p in points))
        marks.append(f'<polyline class="{name}" points="{" ".join(points)}"/>{dots}')
    return _chart("latency over time", [*marks, *_time_labels(begin, step)])


def bars(counts: Counter[str]) -> str:
    """The most frequent words, as bars."""
    if not counts:
        return _nothing("none")
    rows = counts.most_common(_MOST_BARS)
    most = rows[0][1]
    marks = []
    for number, (word, count) in enumerate(rows):
        y = number * _BAR_HEIGHT
        marks.append(
            f'<text x="290" y="{y + 15}" text-anchor="end">{escape(word[:48])}</text>'
            f'<rect class="refused" x="300" y="{y + 3}" width="{max(2.0, count / most * 520):.1f}" height="16"/>'
            f'<text x="{306 + count / most * 520:.1f}" y="{y + 15}">{count}</text>'
        )
    height = len(rows) * _BAR_HEIGHT
    return f'<svg role="img" aria-label="refusals by rule" viewBox="0 0 {_WIDTH} {height}">{"".join(marks)}</svg>'


def _columns(calls: Sequence[FinishedCall]) -> tuple[float, float]:
    begin, end = min(call.at for call in calls), max(call.at for call in calls)
    return begin, max(1.0, end - begin) / _COLUMNS


def _column(at: float, begin: float, step: float) -> int:
    return min(_COLUMNS - 1, int((at - begin) / step))


def _middle(number: int) -> float:
    return _LEFT + (number + 0.5) * (_WIDTH - _LEFT) / _COLUMNS


def _bar(number: int, below: int, count: int, most: int, outcome: str, when: str) -> str:
    scale, width = _HEIGHT / most, (_WIDTH - _LEFT) / _COLUMNS
    return (
        f'<rect class="{outcome}" x="{_LEFT + number * width:.1f}" y="{_HEIGHT - (below + count) * scale:.1f}" '
        f'width="{width - 1:.1f}" height="{count * scale:.1f}"><title>{when}: {count} {outcome}</title></rect>'
    )


def _level(milliseconds: float, decades: int) -> float:
    return _HEIGHT - (_HEIGHT - 8) * log10(max(1.0, milliseconds)) / decades


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.0f} s"


def _left_label(text: str, y: float) -> str:
    return f'<text x="{_LEFT - 6}" y="{y:.1f}" text-anchor="end">{text}</text>'


def _time_labels(begin: float, step: float) -> list[str]:
    y = _HEIGHT + _BOTTOM - 6
    last = _when(begin + _COLUMNS * step)
    return [
        f'<text x="{_LEFT}" y="{y}">{_when(begin)}</text>',
        f'<text x="{_WIDTH}" y="{y}" text-anchor="end">{last}</text>',
    ]


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _chart(name: str, marks: list[str]) -> str:
    height = _HEIGHT + _BOTTOM
    return f'<svg role="img" aria-label="{name}" viewBox="0 0 {_WIDTH} {height}">{"".join(marks)}</svg>'


def _nothing(why: str) -> str:
    return f'<p class="quiet">{why}</p>'
