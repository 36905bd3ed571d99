"""`python -m bench.jobs`: measures the time from a call to the first line of a test, by stage.

Every job starts cold, with a fresh container and interpreter. The times come from the run's evidence; the test writes
its own start time, by the same clock.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_TEST = """
import time
def test_first():
    with open("/output/start_time", "w") as file:
        file.write(repr(time.time()))
"""
_PAGE_TEST = """
import time
def test_first(page):
    page.goto("data:text/html,<title>Tea</title>")
    with open("/output/start_time", "w") as file:
        file.write(repr(time.time()))
"""
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")
PARTS = (
    "gateway, policy, records",
    "create container",
    "start container",
    "first output",
    "first test line",
    "the rest",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.jobs", description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--engine", choices=("docker", "podman"), default="docker")
    arguments = parser.parse_args()
    result = {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "engine": arguments.engine,
    }
    with tempfile.TemporaryDirectory(prefix="bsb-", dir="/tmp") as directory:
        Path(directory).chmod(0o711)
        with _server(Path(directory), arguments.engine) as (port, artifacts):
            for name, tool, options in (
                ("pytest", "run_pytest", {"project": "plain"}),
                ("playwright", "run_playwright", {"project": "page", "language": "python"}),
            ):
                _run(port, artifacts, tool, options)  # warms the engine's caches
                result[name] = _summary([_run(port, artifacts, tool, options) for _ in range(arguments.runs)])
    print(json.dumps(result, indent=1))


def _summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return medians in milliseconds."""
    return {name: round(statistics.median(run[name] for run in runs) * 1000) for name in runs[0]} | {"n": len(runs)}


def _run(port: int, artifacts: Path, tool: str, options: dict[str, Any]) -> dict[str, float]:
    called = time.time()
    answer = _call(port, tool, options)
    answered = time.time()
    directory = artifacts / answer["run_id"]
    evidence = json.loads((directory / "evidence.json").read_bytes())
    ordered = datetime.fromisoformat(evidence["began"]).timestamp()
    seconds = evidence["seconds"]
    test_started = float((directory / "output" / "start_time").read_text())
    times = [
        called,
        ordered,
        ordered + seconds["created"],
        ordered + seconds["started"],
        ordered + seconds["first_output"],
        test_started,
        answered,
    ]
    parts = {name: after - before for name, before, after in zip(PARTS, times[:-1], times[1:], strict=True)}
    return {"call to first test line": test_started - called, "whole call": answered - called, **parts}


def _call(port: int, tool: str, options: dict[str, Any]) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": options}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", json.dumps(message), headers)
    text = connection.getresponse().read().decode()
    connection.close()
    events = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    answer: dict[str, Any] = json.loads(events[-1] if events else text)["result"]["structuredContent"]
    if not answer["passed"]:
        raise SystemExit(f"the job failed:\n{answer['output']}")
    return answer


@contextmanager
def _server(directory: Path, engine: str) -> Iterator[tuple[int, Path]]:
    workspace = directory / "workspace"
    for name, text in (("plain", _TEST), ("page", _PAGE_TEST)):
        (workspace / name).mkdir(parents=True)
        (workspace / name / "test_begin.py").write_text(text)
    address = _last_line("scripts/engine", engine)
    image = _last_line("scripts/jobs-image", engine)
    policy = directory / "policy.json"
    policy.write_text(json.dumps({"sandbox": {"image": image, "engine": engine}}))
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "BROWSER_SHELL_WORKSPACE": str(workspace),
        "BROWSER_SHELL_STATE_DIR": str(directory / "state"),
        "BROWSER_SHELL_RUNTIME_DIR": str(directory / "run"),
        "BROWSER_SHELL_ENGINE": address,
        "BROWSER_SHELL_POLICY": str(policy),
        "PUBLIC_PORT": "0",
    }
    program = str(Path(sys.executable).with_name("browser-shell"))
    argv = [program, "serve", "--profile", "write", "--unsafe-no-auth"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                if found := _ADDRESS.search(line):
                    break
            else:
                raise SystemExit("the server did not start")
            yield int(found[1]), directory / "state" / "jobs" / "artifacts"
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    shutil.rmtree(directory / "state", ignore_errors=True)


def _last_line(script: str, engine: str) -> str:
    argv = [script, engine] if script.endswith("engine") else [script]
    env = {**os.environ, "ENGINE": engine}
    result = subprocess.run(argv, cwd=_ROOT, env=env, stdout=subprocess.PIPE, text=True, timeout=900, check=True)
    return result.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
