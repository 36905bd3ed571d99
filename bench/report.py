"""Percentiles of the samples, and the table that the benchmark prints."""

from __future__ import annotations

import statistics
from typing import Any

from bench.subjects import STEPS

WHOLE_TASK = "whole task"
MAX_RATIO_RAW_CDP, MAX_RATIO_AB_MCP = 1.5, 0.75
"""Budgets of the whole task (docs/performance.md)."""
MAX_PSS_MB = 90.0
Samples = dict[str, dict[str, list[float]]]
"""Milliseconds by subject and step."""


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def summary(samples: Samples) -> dict[str, Any]:
    """Return p50 and p90 of each step and subject, and the ratio to each peer."""
    rows: dict[str, Any] = {}
    for step in (*STEPS, WHOLE_TASK):
        row: dict[str, Any] = {
            name: {
                "p50": round(percentile(steps[step], 0.5), 2),
                "p90": round(percentile(steps[step], 0.9), 2),
                "n": len(steps[step]),
            }
            for name, steps in samples.items()
            if steps.get(step)
        }
        rows[step] = {**row, **_comparison(row, samples, step)}
    return rows


def _comparison(row: dict[str, Any], samples: Samples, step: str) -> dict[str, Any]:
    peers = [name for name in ("cli", "ab-mcp", "raw-cdp") if "ours" in row and name in row]
    comparison: dict[str, Any] = {f"ratio_{name}": round(row["ours"]["p50"] / row[name]["p50"], 2) for name in peers}
    if "cli" in peers:
        pairs = zip(samples["ours"][step], samples["cli"][step], strict=False)
        comparison["over_cli_ms"] = round(statistics.median(ours - cli for ours, cli in pairs), 2)
    return comparison


def table(result: dict[str, Any]) -> str:
    """Return the whole report as text."""
    names = result["subjects"]
    lines = [
        f"{result['machine']}; load {result['load'][0]} at the start, {result['load'][1]} at the end; "
        f"{result['rounds']} rounds{_rounds_left_out(result)}, seed {result['seed']}, era {result['era']}, "
        f"failures {len(result['failures'])}",
        "",
        "p50/p90 in ms".ljust(14)
        + "".join(name.rjust(15) for name in names)
        + "  ours/cli   over  ours/ab-mcp  ours/raw-cdp",
    ]
    for step, row in result["steps"].items():
        cells = [f"{row[name]['p50']:.1f}/{row[name]['p90']:.1f}" if name in row else "-" for name in names]
        comparison = (
            f"{row.get('ratio_cli', 0):10.2f}{row.get('over_cli_ms', 0):+7.1f}"
            f"{row.get('ratio_ab-mcp', 0):13.2f}{row.get('ratio_raw-cdp', 0):14.2f}"
        )
        lines.append(step.ljust(14) + "".join(cell.rjust(15) for cell in cells) + comparison)
    task = result["steps"][WHOLE_TASK]
    lines += [
        "",
        "over = median of ours - cli in ms, pair by pair",
        f"budgets of the whole task: {_verdict(task, 'ab-mcp', MAX_RATIO_AB_MCP)}, "
        f"{_verdict(task, 'raw-cdp', MAX_RATIO_RAW_CDP)}",
        "",
    ]
    for name, row in result["tools_list"].items():
        lines.append(
            f"tools/list  {name:14} p50 {row['p50']:6.2f} ms  p90 {row['p90']:6.2f} ms  "
            f"{row['characters']} characters, {row['tokens']} tokens"
        )
    lines += ["", *_memory_lines(result["memory"])]
    lines += [f"failed: {line}" for line in result["failures"][:10]]
    return "\n".join(lines)


def _rounds_left_out(result: dict[str, Any]) -> str:
    if result["most_stolen_percent"] >= 100:
        return ""
    percent = f"{result['most_stolen_percent']:.0f} %"
    return f" ({result['rounds_left_out']} more left out: the host took over {percent} of the processor time)"


def _verdict(row: dict[str, Any], peer: str, limit: float) -> str:
    ratio = row.get(f"ratio_{peer}")
    return f"at most {limit} x {peer}: {'-' if ratio is None else _yes_or_no(ratio <= limit)}"


def _memory_lines(memory: dict[str, Any]) -> list[str]:
    lines = ["memory in MB, one session, without Chromium    RSS    PSS"]
    for phase, rows in memory.items():
        lines += [
            f"  {phase:8} {row['name']:16} x{row['processes']:<14}{row['rss']:7.1f}{row['pss']:7.1f}" for row in rows
        ]
        own = [row for row in rows if row["name"] in ("server", "driver daemon")]
        rss, pss = sum(row["rss"] for row in own), sum(row["pss"] for row in own)
        verdict = f"budget: at most {MAX_PSS_MB:.0f} PSS: {_yes_or_no(pss <= MAX_PSS_MB)}"
        lines.append(f"  {phase:8} {'server and driver daemon':32}{rss:7.1f}{pss:7.1f}  {verdict}")
    return lines


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "NO"
