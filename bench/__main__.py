"""Measure the login task on this server and on its peers, print a table and write bench/result.json. Exits with 0."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from bench import report
from bench.boxes import MachineTime, Setup, memory_below, page_server, work_folder
from bench.subjects import DriverMcp, Ours, StepFailed, Subject, ours, peer, run_task
from bench.wire import HttpMcp, WireError
from browser_shell.core.errors import BrowserShellError
from browser_shell.process.accounts import account_to_drop_to
from browser_shell.process.orphans import adopt_orphans
from browser_shell.settings import read_settings

_ROOT = Path(__file__).parent.parent
_WARM_UP_TASKS = 5
_MAX_FAILURES = 30


def main() -> None:
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    adopt_orphans()
    try:
        result = _measure(arguments)
    except (BrowserShellError, RuntimeError, WireError, StepFailed, OSError) as fault:
        print(f"bench: could not measure: {fault}", file=sys.stderr)
        return
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(report.table(result))
    print(f"\nwritten: {arguments.out}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about one minute")
    parser.add_argument("--seconds", type=float, help="how long to measure (default 200, quick 35)")
    parser.add_argument("--seed", type=int, default=2026, help="seed of the order of the subjects in each round")
    parser.add_argument(
        "--era", choices=("modern", "legacy"), default="modern", help="MCP protocol version used with this server"
    )
    parser.add_argument("--subjects", default="cli,ab-mcp,raw-cdp", help="peers, separated by commas")
    parser.add_argument(
        "--also", type=Path, action="append", default=[], help="another browser-shell command to compare"
    )
    parser.add_argument("--pause-ms", type=float, default=0, help="pause before each call, not measured")
    parser.add_argument(
        "--most-stolen",
        type=float,
        default=100.0,
        help="percent of processor time that the host of this virtual machine may take during a round; "
        "other rounds are left out (default 100: no round is left out)",
    )
    parser.add_argument("--out", type=Path, default=_ROOT / "bench" / "result.json")
    arguments = parser.parse_args()
    arguments.seconds = arguments.seconds or (35.0 if arguments.quick else 200.0)
    return arguments


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    settings = read_settings()
    load = [_load()]
    with ExitStack() as stack:
        account = account_to_drop_to(settings.account)
        folder = stack.enter_context(work_folder())
        page_port = stack.enter_context(page_server())
        setup = Setup(
            settings=settings,
            account=account,
            folder=folder,
            portal=stack.enter_context(start_blocking_portal()),
            page_url=f"http://127.0.0.1:{page_port}/login",
            page_port=page_port,
        )
        command = Path(sys.executable).with_name("browser-shell")
        mine = stack.enter_context(ours(setup, "ours", command, arguments.era))
        _warm_up(mine, setup.page_url)
        # Measured before the peers start, because PSS divides shared pages among all processes.
        memory = {"fresh": [asdict(row) for row in memory_below(mine.server.pid)]}
        subjects: list[Subject] = [mine]
        for number, command in enumerate(arguments.also, 2):
            subjects.append(stack.enter_context(ours(setup, f"ours-{number}", command, arguments.era)))
            _warm_up(subjects[-1], setup.page_url)
        for name in arguments.subjects.split(","):
            subject = stack.enter_context(peer(setup, name))
            _warm_up(subject, setup.page_url)
            subjects.append(subject)
        measurement = _rounds(subjects, setup.page_url, arguments)
        memory["worked"] = [asdict(row) for row in memory_below(mine.server.pid)]
        tools_list = _tools_lists(subjects)
    load.append(_load())
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, {'root' if os.geteuid() == 0 else 'not root'}",
        "load": load,
        "seed": arguments.seed,
        "era": arguments.era,
        "rounds": measurement.counted,
        "rounds_left_out": measurement.left_out,
        "most_stolen_percent": arguments.most_stolen,
        "subjects": [subject.name for subject in subjects],
        "steps": report.summary(measurement.samples),
        "tools_list": tools_list,
        "memory": memory,
        "failures": measurement.failures,
        "samples": {
            name: {step: [round(value, 3) for value in values] for step, values in steps.items()}
            for name, steps in measurement.samples.items()
        },
    }


def _warm_up(subject: Subject, url: str) -> None:
    try:
        for number in range(_WARM_UP_TASKS):
            run_task(subject, url, number)
    except (StepFailed, WireError, OSError) as fault:
        raise RuntimeError(f"{subject.name} does not work: {fault}") from fault


@dataclass(slots=True)
class _Measurement:
    samples: report.Samples
    failures: list[str] = field(default_factory=list)
    counted: int = 0
    left_out: int = 0
    """Rounds during which the host took too much processor time."""


def _rounds(subjects: list[Subject], url: str, arguments: argparse.Namespace) -> _Measurement:
    """Run the task on every subject in rounds, each in a new order, so that drift and noise affect all alike."""
    order = random.Random(arguments.seed)  # noqa: S311  not a secret
    measurement = _Measurement({subject.name: {} for subject in subjects})
    end = time.monotonic() + arguments.seconds
    number = 100
    while time.monotonic() < end and len(measurement.failures) < _MAX_FAILURES:
        number += 1
        durations: dict[str, dict[str, list[float]]] = {}
        before = MachineTime.now()
        for subject in order.sample(subjects, len(subjects)):
            try:
                durations[subject.name] = run_task(subject, url, number, pause=arguments.pause_ms / 1000)
            except (StepFailed, WireError, OSError, subprocess.TimeoutExpired) as fault:
                measurement.failures.append(f"round {number}, {subject.name}: {fault}")
        if len(durations) < len(subjects):
            continue  # Only complete rounds count, so that samples stay paired.
        if MachineTime.now().stolen_percent_since(before) > arguments.most_stolen:
            measurement.left_out += 1
            continue
        measurement.counted += 1
        for name, steps in durations.items():
            samples = measurement.samples[name]
            for step, values in steps.items():
                samples.setdefault(step, []).extend(values)
            samples.setdefault(report.WHOLE_TASK, []).append(sum(sum(values) for values in steps.values()))
        if sys.stderr.isatty():
            seconds = end - time.monotonic()
            print(f"\r{measurement.counted} rounds, {seconds:.0f} s left ", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return measurement


def _tools_lists(subjects: list[Subject]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for subject in subjects:
        if isinstance(subject, DriverMcp):
            results[subject.name] = _tools_list(subject)
        elif isinstance(subject, Ours):
            for era in ("modern", "legacy"):
                with _with_era(subject, era):
                    results[f"{subject.name} {era}"] = _tools_list(subject)
    return results


@contextmanager
def _with_era(subject: Ours, era: str) -> Iterator[None]:
    before, subject.client = subject.client, HttpMcp(subject.server.port, era, subject.server.token)
    try:
        yield
    finally:
        subject.client.close()
        subject.client = before


def _tools_list(subject: Ours | DriverMcp) -> dict[str, Any]:
    durations, text = [], ""
    for _ in range(60):
        duration, result = subject.list_tools()
        durations.append(duration)
        text = json.dumps(result["tools"], ensure_ascii=False, separators=(",", ":"))
    return {
        "p50": round(report.percentile(durations[10:], 0.5), 3),
        "p90": round(report.percentile(durations[10:], 0.9), 3),
        "characters": len(text),
        "tokens": _tokens(text),
    }


def _tokens(text: str) -> str:
    """Count cl100k tokens if `make conformance` has installed the tools, else estimate."""
    modules = _ROOT / ".tools" / "conformance" / "node_modules"
    node, script = shutil.which("node"), _ROOT / "tests" / "conformance" / "count_tokens.mjs"
    if node and script.exists() and (modules / "js-tiktoken").exists():
        argv = [node, str(script), str(modules.parent)]
        process = subprocess.run(argv, input=text.encode(), capture_output=True, timeout=30, check=False)
        if process.stdout.strip().isdigit():
            return f"{int(process.stdout)} cl100k"
    return f"about {len(text) // 4}"


def _load() -> str:
    return Path("/proc/loadavg").read_text().split()[0]


if __name__ == "__main__":
    main()
