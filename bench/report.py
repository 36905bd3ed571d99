"""Figures from samples, and the table for people."""

from __future__ import annotations

import statistics
from typing import Any

from bench.subjects import STEPS

RATIO, EXTRA_MS, MEMORY_MB = 1.15, 2.0, 90.0
Samples = dict[str, dict[str, list[float]]]
"""Milliseconds by subject and step."""


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def summary(samples: Samples) -> dict[str, Any]:
    """p50 and p90 of each step and subject, and the verdicts."""
    steps: dict[str, Any] = {}
    for step in (*STEPS, "loop"):
        row: dict[str, Any] = {
            name: {
                "p50": round(percentile(of[step], 0.5), 2),
                "p90": round(percentile(of[step], 0.9), 2),
                "n": len(of[step]),
            }
            for name, of in samples.items()
            if of.get(step)
        }
        steps[step] = {**row, **_verdict(row, samples, step)}
    return steps


def _verdict(row: dict[str, Any], samples: Samples, step: str) -> dict[str, Any]:
    verdict: dict[str, Any] = {}
    if "ours" not in row:
        return verdict
    mine = row["ours"]["p50"]
    if "cli" in row:
        floor = row["cli"]["p50"]
        count = 7 if step == "loop" else 1  # The loop has seven calls, each with its allowance.
        limit = floor * RATIO + EXTRA_MS * count
        verdict |= {"ratio_cli": round(mine / floor, 2), "limit": round(limit, 2), "within": mine <= limit}
        pairs = zip(samples["ours"][step], samples["cli"][step], strict=False)
        verdict["over_cli_ms"] = round(statistics.median(a - b for a, b in pairs), 2)
    if "ab-mcp" in row:
        verdict["below_ab_mcp"] = mine < row["ab-mcp"]["p50"]
    if "raw-cdp" in row:
        verdict["ratio_raw"] = round(mine / row["raw-cdp"]["p50"], 2)
    return verdict


def _left_out(result: dict[str, Any]) -> str:
    if result["most_stolen_percent"] >= 100:
        return ""
    percent = f"{result['most_stolen_percent']:.0f} %"
    return f" ({result['rounds_left_out']} more left out: the machine's host gave over {percent} of it to others)"


def table(result: dict[str, Any]) -> str:
    """The whole report as text."""
    names = result["subjects"]
    lines = [
        f"{result['machine']}; load {result['load'][0]} at the start, {result['load'][1]} at the end; "
        f"{result['rounds']} rounds{_left_out(result)}, seed {result['seed']}, era {result['era']}, "
        f"failures {len(result['failures'])}",
        "",
        "p50/p90 in ms".ljust(14)
        + "".join(name.rjust(15) for name in names)
        + "  ours/cli   over  limit  within  < ab-mcp  ours/raw",
    ]
    for step, row in result["steps"].items():
        cells = [f"{row[name]['p50']:.1f}/{row[name]['p90']:.1f}" if name in row else "-" for name in names]
        verdict = (
            f"{row.get('ratio_cli', 0):10.2f}{row.get('over_cli_ms', 0):+7.1f}{row.get('limit', 0):7.1f}"
            f"{_yes(row.get('within')):>8}{_yes(row.get('below_ab_mcp')):>10}{row.get('ratio_raw', 0):10.2f}"
        )
        lines.append(step.ljust(14) + "".join(cell.rjust(15) for cell in cells) + verdict)
    lines += ["", f"limit = {RATIO} x cli + {EXTRA_MS:.0f} ms a call; over = median of ours - cli, pair by pair", ""]
    for name, row in result["tools_list"].items():
        lines.append(
            f"tools/list  {name:14} p50 {row['p50']:6.2f} ms  p90 {row['p90']:6.2f} ms  "
            f"{row['characters']} characters, {row['tokens']} tokens"
        )
    lines += ["", f"program start (`agent-browser --version`) p50 {result['spawn_ms']:.1f} ms", ""]
    lines += _memory_lines(result["memory"])
    lines += [f"failed: {line}" for line in result["failures"][:10]]
    return "\n".join(lines)


def _memory_lines(memory: dict[str, Any]) -> list[str]:
    lines = ["memory in MB, one session, without Chromium    RSS    PSS"]
    for moment, rows in memory.items():
        lines += [
            f"  {moment:8} {row['name']:16} x{row['processes']:<14}{row['rss']:7.1f}{row['pss']:7.1f}" for row in rows
        ]
        own = [row for row in rows if row["name"] in ("server", "driver daemon")]
        rss, pss = sum(row["rss"] for row in own), sum(row["pss"] for row in own)
        target = f"at most {MEMORY_MB:.0f}: {_yes(rss <= MEMORY_MB)} as RSS, {_yes(pss <= MEMORY_MB)} as PSS"
        lines.append(f"  {moment:8} {'our own: server, driver':32}{rss:7.1f}{pss:7.1f}  {target}")
    return lines


def _yes(holds: bool | None) -> str:
    return "-" if holds is None else "yes" if holds else "NO"
