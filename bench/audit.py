"""`python -m bench.audit`: cost of durable audit records for a call, and speed of verification."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import anyio

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.audit.signing import PublicKey
from browser_shell.audit.verify import verify_log
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.policy.document import PolicyDocument

_CALL_RECORDS = (RecordKind.MCP_TOOL_CALL, RecordKind.SANDBOX_EXEC, RecordKind.TOOL_FINISHED)


class _Clock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.audit", description=__doc__)
    parser.add_argument("--calls", type=int, default=1500)
    parser.add_argument("--records", type=int, default=200_000, help="number of records to verify")
    parser.add_argument("--directory", type=Path, help="directory on the disk to measure (default: temporary)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        result = anyio.run(_measure, Path(folder), arguments.calls, arguments.records)
    print(json.dumps(result, indent=1))


async def _measure(folder: Path, calls: int, records: int) -> dict[str, object]:
    path = folder / "audit.jsonl"
    digest = PolicyDocument().digest()
    with JsonLinesAudit(path=path, clock=_Clock(), policy_digest=digest) as audit:
        one = [await _call(audit, number) for number in range(calls)]
        concurrent: list[float] = []
        started = time.perf_counter()
        for start in range(0, calls, 16):
            async with anyio.create_task_group() as tasks:
                for number in range(start, start + 16):
                    tasks.start_soon(_timed_into, concurrent, audit, number)
        rate = len(concurrent) / (time.perf_counter() - started)
        started, cpu_before = time.perf_counter(), time.process_time()
        for number in range(records):
            await audit.record(_record(RecordKind.MCP_TOOL_CALL, number))
        plain = (time.perf_counter() - started) / records
        cpu_plain = (time.process_time() - cpu_before) / records
    key = PublicKey.read(path.with_suffix(".pub"))
    cpu_started = time.process_time()
    verdicts = [verify_log(path, key=key) for _ in range(3)]
    cpu_seconds = (time.process_time() - cpu_started) / len(verdicts)
    best = min(verdicts, key=lambda verdict: verdict.seconds)
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "fdatasync_alone_ms": percentiles([_bare_flush(folder) for _ in range(300)]),
        "call_ms": percentiles(one),
        "call_ms_16_at_once": percentiles(concurrent),
        "calls_per_second_16_at_once": round(rate),
        "record_without_flush_us": round(plain * 1e6, 1),
        "record_without_flush_cpu_us": round(cpu_plain * 1e6, 1),
        "verify_records_per_second": round(best.records / best.seconds),
        "verify_records_per_cpu_second": round(best.records / cpu_seconds),
        "verified": {
            "records": best.records,
            "files": best.files,
            "checkpoints": best.checkpoints,
            "sound": best.sound,
        },
    }


async def _call(audit: JsonLinesAudit, number: int) -> float:
    """Write the three records of a call, one of them durable. Return the milliseconds."""
    started = time.perf_counter()
    for kind in _CALL_RECORDS:
        await audit.record(_record(kind, number))
    return (time.perf_counter() - started) * 1000


async def _timed_into(into: list[float], audit: JsonLinesAudit, number: int) -> None:
    into.append(await _call(audit, number))


def _record(kind: RecordKind, number: int) -> AuditRecord:
    return AuditRecord(
        kind=kind,
        call_id=f"{number:024x}",
        subject="bench",
        tool="browser-shell",
        session_id="s1",
        subcommand="open",
        host="www.example.com",
        exit_code=0,
        duration_ms=12.3,
    )


def _bare_flush(folder: Path) -> float:
    with (folder / "bare").open("ab", buffering=0) as file:
        file.write(b"x" * 400)
        started = time.perf_counter()
        os.fdatasync(file.fileno())
        return (time.perf_counter() - started) * 1000


def percentiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100)
    return {"p50": round(cuts[49], 3), "p95": round(cuts[94], 3), "p99": round(cuts[98], 3)}


if __name__ == "__main__":
    main()
