"""Limits with real clients and servers that are killed or whose clock jumps."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from support.limited_callers import Answer, calling
from support.redis_server import RedisServer

_PROGRAM = Path(__file__).parent.parent / "support" / "limits_server.py"
_FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), Path("/nonexistent"))


class LimitedServer:
    def __init__(self, process: subprocess.Popen[str], clock: Path) -> None:
        self.process = process
        self.clock = clock
        assert process.stdout is not None
        self.address = process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:")

    def set_clock(self, offset: str) -> None:
        """Set the wall clock by an offset such as `+2d`. The monotonic clock does not change."""
        self.clock.write_text(offset)


@contextmanager
def limited_server(directory: Path, limits: object, redis: RedisServer | None = None) -> Iterator[LimitedServer]:
    assert _FAKETIME.exists(), "faketime is not installed; run: make install-dev"
    clock = directory / f"clock-{time.monotonic_ns()}"
    clock.write_text("+0")
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(_PROGRAM.parent.parent),
        "LD_PRELOAD": str(_FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    argv = [sys.executable, str(_PROGRAM), json.dumps(limits), *([redis.url] if redis else [])]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield LimitedServer(process, clock)
        finally:
            process.kill()


async def run(server: LimitedServer, *argv: str) -> Answer:
    async with calling(server.address, "ann") as caller:
        return await caller.run(*argv)


@pytest.mark.promise("limits:no-clock-opens-the-gate")
@pytest.mark.parametrize(
    ("offset", "seconds"), [("+2m", 120), ("+400d", 34_560_000), ("-2m", -120), ("-400d", -34_560_000)]
)
@pytest.mark.parametrize("where", ["memory", "redis"])
async def test_a_jump_of_the_wall_clock_does_not_change_the_limits(
    where: str, offset: str, seconds: float, tmp_path: Path, redis: RedisServer
) -> None:
    redis.ask("FLUSHALL")
    limits = {"calls_per_minute": 4, "concurrent_calls": 1, "budget": {"max_retries": 0, "window_seconds": 60}}
    with limited_server(tmp_path, limits, redis if where == "redis" else None) as server:
        assert (await run(server, "click")).exit_code == 2
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, server, "wait", "2500")
            await anyio.sleep(1)
            server.set_clock(offset)
            assert (await run(server, "close")).rule == "limits.concurrency"
        assert (await run(server, "click")).rule == "limits.budget.retries"
        passed = [await run(server, "close") for _ in range(2)]
        assert [answer.exit_code for answer in passed] == [0, 0]
        assert abs(json.loads(passed[0].stdout)["wall"] - time.time() - seconds) < 60, "the clock did not jump"
        assert (await run(server, "close")).rule == "limits.rate"
        server.set_clock("+0")
        assert (await run(server, "close")).rule == "limits.rate"


@pytest.mark.promise("limits:killed-server-frees-its-slots")
async def test_the_slots_of_a_killed_server_expire(tmp_path: Path, redis: RedisServer) -> None:
    redis.ask("FLUSHALL")
    limits = {"concurrent_calls": 1}
    with limited_server(tmp_path, limits, redis) as one, limited_server(tmp_path, limits, redis) as other:
        thread = threading.Thread(target=lambda: _call_until_killed(one), daemon=True)
        thread.start()
        with anyio.fail_after(10):
            while (await run(other, "close")).rule != "limits.concurrency":  # noqa: ASYNC110  there is no event
                await anyio.sleep(0.05)
        one.process.kill()
        killed_at = time.monotonic()
        assert (await run(other, "close")).rule == "limits.concurrency"
        with anyio.fail_after(30):
            while (await run(other, "close")).exit_code != 0:  # noqa: ASYNC110  there is no event
                await anyio.sleep(0.2)
        assert time.monotonic() - killed_at < 25
        thread.join(5)


def _call_until_killed(server: LimitedServer) -> None:
    """Make a call that never returns because its server is killed. Retry while a probe has the only slot."""
    try:
        while anyio.run(run, server, "wait", "30000").rule == "limits.concurrency":
            continue
    except BaseException:  # noqa: BLE001  the client may raise anything
        return
