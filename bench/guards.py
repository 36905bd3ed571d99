"""`python -m bench.guards`: cost of a call without its execution: limits, plan, hooks, policy, durable audit."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path

import anyio

from bench.audit import percentiles
from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.calls import Principal, ToolCall
from browser_shell.core.ports import AuditLog, Limits
from browser_shell.hooks.chain import standard_chain
from browser_shell.limits.gate import LimitsGate, open_gate
from browser_shell.pipeline import Pipeline
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.loading import policy_from
from browser_shell.policy.rules import UrlPolicy
from browser_shell.runner import ExecutionRunner
from browser_shell.server.common import SystemClock, new_call_id
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.fakes import (
    FakePerson,
    FakeResolver,
    NoLimits,
    RecordingActivity,
    RecordingAudit,
    RecordingSandbox,
)
from support.redis_server import running_redis

_WIDE = {
    "limits": {
        "calls_per_minute": 100_000,
        "calls_per_day": 10_000_000,
        "budget": {"elapsed_seconds": 86_400},
        "subjects": {f"subject-{number}": {"calls_per_minute": 10} for number in range(100)},
    }
}
_REDIS = "/usr/bin/redis-server"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.guards", description=__doc__)
    parser.add_argument("--calls", type=int, default=1500)
    parser.add_argument("--directory", type=Path, help="directory on the disk to measure (default: temporary)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        print(json.dumps(anyio.run(_measure, Path(folder), arguments.calls), indent=1))


async def _measure(folder: Path, calls: int) -> dict[str, object]:
    document = policy_from(_WIDE, source="bench")
    result: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    }
    clock = SystemClock()
    with JsonLinesAudit(path=folder / "audit.jsonl", clock=clock, policy_digest=document.digest()) as audit:
        async with open_gate(document.limits, redis_url="", clock=clock, new_id=new_call_id) as gate:
            # Interleaved, so that changes of the disk's speed affect all alike.
            parts = {
                "guards_and_audit_ms": _pipeline(document, gate, audit),
                "without_limits_ms": _pipeline(document, NoLimits(), audit),
                "guards_without_audit_ms": _pipeline(document, gate, RecordingAudit()),
            }
            times: dict[str, list[float]] = {name: [] for name in parts}
            for number in range(calls):
                for name, pipeline in parts.items():
                    times[name].append(await _timed(pipeline, number))
            result |= {name: percentiles(values) for name, values in times.items()}
            result["limits_in_memory_ms"] = percentiles([await _admitted(gate, number) for number in range(calls)])
        if Path(_REDIS).exists():
            with running_redis() as redis:
                async with open_gate(
                    document.limits, redis_url=redis.socket_url, clock=clock, new_id=new_call_id
                ) as gate:
                    result["limits_on_redis_ms"] = percentiles(
                        [await _admitted(gate, number) for number in range(calls)]
                    )
    return result


def _pipeline(document: PolicyDocument, limits: Limits, audit: AuditLog) -> Pipeline:
    rules = UrlPolicy(document)
    return Pipeline(
        registry=ToolRegistry([BrowserShellTool(allowed=rules.commands)]),
        limits=limits,
        hooks=standard_chain(),
        policy=rules,
        resolver=FakeResolver(),
        audit=audit,
        runner=ExecutionRunner(browser=RecordingSandbox()),
        human=FakePerson(),
        show_activity=RecordingActivity().add,
        clock=SystemClock(),
    )


def _call(number: int) -> ToolCall:
    return ToolCall(
        call_id=f"{number:024x}",
        principal=Principal(subject="bench"),
        tool="browser-shell",
        arguments={"session_id": f"s{number % 8}", "argv": ["fill", "#name", f"text {number}"], "timeout_sec": 30},
    )


async def _timed(pipeline: Pipeline, number: int) -> float:
    started = time.perf_counter()
    outcome = await pipeline.handle(_call(number))
    elapsed = (time.perf_counter() - started) * 1000
    assert outcome.exit_code == 0, outcome.stderr  # noqa: S101  a refused call would be faster
    return elapsed


async def _admitted(gate: LimitsGate, number: int) -> float:
    started = time.perf_counter()
    lease = await gate.admit(_call(number))
    async with lease.running():
        pass
    await lease.settle(None)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
