"""`python -m bench`: prints a table and writes bench/result.json. It measures and never judges: it exits with 0."""

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
from bench.boxes import MachineTime, Setup, acting_as, memory_below, page_server, work_folder
from bench.subjects import DriverMcp, Ours, StepFailed, Subject, loop, ours, peer, timed
from bench.wire import HttpMcp, WireError
from browser_shell.core.errors import BrowserShellError
from browser_shell.process.accounts import account_to_drop_to
from browser_shell.process.orphans import adopt_orphans
from browser_shell.settings import read_settings

_ROOT = Path(__file__).parent.parent
_WARM_UP_LOOPS = 5
_MOST_FAILURES = 30


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
    parser.add_argument("--seed", type=int, default=2026, help="of the order of the subjects in each round")
    parser.add_argument("--era", choices=("modern", "legacy"), default="modern", help="protocol spoken to this server")
    parser.add_argument("--subjects", default="cli,ab-mcp,raw-cdp", help="peers; `cli-batch` is there for diagnosis")
    parser.add_argument(
        "--also", type=Path, action="append", default=[], help="another browser-shell command beside ours"
    )
    parser.add_argument("--pause-ms", type=float, default=0, help="before each call, not counted: an agent that thinks")
    parser.add_argument(
        "--most-stolen",
        type=float,
        default=100.0,
        help="percent of the machine's time that its host may give to others during a round; beyond it no subject's "
        "figures of that round count (default 100: all count)",
    )
    parser.add_argument("--out", type=Path, default=_ROOT / "bench" / "result.json")
    arguments = parser.parse_args()
    arguments.seconds = arguments.seconds or (35.0 if arguments.quick else 200.0)
    return arguments


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    settings = read_settings()
    load = [_load()]
    with ExitStack() as held:
        account = account_to_drop_to(settings.account)
        folder = held.enter_context(work_folder())
        page_port = held.enter_context(page_server())
        setup = Setup(
            settings=settings,
            account=account,
            folder=folder,
            portal=held.enter_context(start_blocking_portal()),
            page_url=f"http://127.0.0.1:{page_port}/login",
            page_port=page_port,
        )
        command = Path(sys.executable).with_name("browser-shell")
        mine = held.enter_context(ours(setup, "ours", command, arguments.era))
        _warm_up(mine, setup.page_url)
        # Before the others start: PSS divides what they share with us.
        memory = {"fresh": [asdict(row) for row in memory_below(mine.server.pid)]}
        subjects: list[Subject] = [mine]
        for number, command in enumerate(arguments.also, 2):
            subjects.append(held.enter_context(ours(setup, f"ours-{number}", command, arguments.era)))
            _warm_up(subjects[-1], setup.page_url)
        for name in arguments.subjects.split(","):
            subject = held.enter_context(peer(setup, name))
            _warm_up(subject, setup.page_url)
            subjects.append(subject)
        measured = _rounds(subjects, setup.page_url, arguments)
        memory["worked"] = [asdict(row) for row in memory_below(mine.server.pid)]
        listed = _tools_lists(subjects)
        spawn = _spawn_ms(setup)
    load.append(_load())
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, {'root' if os.geteuid() == 0 else 'not root'}",
        "load": load,
        "seed": arguments.seed,
        "era": arguments.era,
        "rounds": measured.counted,
        "rounds_left_out": measured.left_out,
        "most_stolen_percent": arguments.most_stolen,
        "subjects": [subject.name for subject in subjects],
        "steps": report.summary(measured.samples),
        "tools_list": listed,
        "spawn_ms": spawn,
        "memory": memory,
        "failures": measured.failures,
        "samples": {
            name: {step: [round(one, 3) for one in all_] for step, all_ in of.items()}
            for name, of in measured.samples.items()
        },
    }


def _warm_up(subject: Subject, url: str) -> None:
    try:
        for number in range(_WARM_UP_LOOPS):
            loop(subject, url, number)
    except (StepFailed, WireError, OSError) as fault:
        raise RuntimeError(f"{subject.name} does not work: {fault}") from fault


@dataclass(slots=True)
class _Measured:
    samples: report.Samples
    failures: list[str] = field(default_factory=list)
    counted: int = 0
    left_out: int = 0
    """Rounds during which the machine's host gave too much of its time to others."""


def _rounds(subjects: list[Subject], url: str, arguments: argparse.Namespace) -> _Measured:
    """One round runs the task once on every subject, in a new order, so that drift and noise hit all alike."""
    chance = random.Random(arguments.seed)  # noqa: S311  an order, not a secret
    measured = _Measured({subject.name: {} for subject in subjects})
    end = time.monotonic() + arguments.seconds
    number = 100
    while time.monotonic() < end and len(measured.failures) < _MOST_FAILURES:
        number += 1
        spent: dict[str, dict[str, list[float]]] = {}
        before = MachineTime.now()
        for subject in chance.sample(subjects, len(subjects)):
            try:
                spent[subject.name] = loop(subject, url, number, pause=arguments.pause_ms / 1000)
            except (StepFailed, WireError, OSError, subprocess.TimeoutExpired) as fault:
                measured.failures.append(f"round {number}, {subject.name}: {fault}")
        if len(spent) < len(subjects):
            continue  # Only whole rounds count, so that samples stay paired.
        if MachineTime.now().stolen_percent_since(before) > arguments.most_stolen:
            measured.left_out += 1
            continue
        measured.counted += 1
        for name, steps in spent.items():
            samples = measured.samples[name]
            for step, values in steps.items():
                samples.setdefault(step, []).extend(values)
            samples.setdefault("loop", []).append(sum(sum(values) for values in steps.values()))
        if sys.stderr.isatty():
            seconds = end - time.monotonic()
            print(f"\r{measured.counted} rounds, {seconds:.0f} s left ", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return measured


def _tools_lists(subjects: list[Subject]) -> dict[str, Any]:
    listed: dict[str, Any] = {}
    for subject in subjects:
        if isinstance(subject, DriverMcp):
            listed[subject.name] = _tools_list(subject)
        elif isinstance(subject, Ours):
            for era in ("modern", "legacy"):
                with _on_era(subject, era):
                    listed[f"{subject.name} {era}"] = _tools_list(subject)
    return listed


@contextmanager
def _on_era(subject: Ours, era: str) -> Iterator[None]:
    before, subject.client = subject.client, HttpMcp(subject.server.port, era, subject.server.token)
    try:
        yield
    finally:
        subject.client.close()
        subject.client = before


def _tools_list(subject: Ours | DriverMcp) -> dict[str, Any]:
    spent, text = [], ""
    for _ in range(60):
        one, result = subject.list_tools()
        spent.append(one)
        text = json.dumps(result["tools"], ensure_ascii=False, separators=(",", ":"))
    return {
        "p50": round(report.percentile(spent[10:], 0.5), 3),
        "p90": round(report.percentile(spent[10:], 0.9), 3),
        "characters": len(text),
        "tokens": _tokens(text),
    }


def _tokens(text: str) -> str:
    """cl100k when the conformance tools are installed (`make conformance`), else an estimate."""
    modules = _ROOT / ".tools" / "conformance" / "node_modules"
    node, script = shutil.which("node"), _ROOT / "tests" / "conformance" / "count_tokens.mjs"
    if node and script.exists() and (modules / "js-tiktoken").exists():
        argv = [node, str(script), str(modules.parent)]
        done = subprocess.run(argv, input=text.encode(), capture_output=True, timeout=30, check=False)
        if done.stdout.strip().isdigit():
            return f"{int(done.stdout)} cl100k"
    return f"about {len(text) // 4}"


def _spawn_ms(setup: Setup) -> float:
    argv = [str(setup.settings.driver), "--version"]
    spent = []
    with acting_as(setup.account):
        for _ in range(30):
            run = timed(lambda: subprocess.run(argv, env={}, cwd="/", capture_output=True, check=False))
            spent.append(run[0])
    return round(report.percentile(spent, 0.5), 2)


def _load() -> str:
    return Path("/proc/loadavg").read_text().split()[0]


if __name__ == "__main__":
    main()
