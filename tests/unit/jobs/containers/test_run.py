"""Output is passed on to its end and stored up to a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from aiodocker.stream import Message

from browser_shell.core.containers import ContainerLimits, ContainerOrder
from browser_shell.jobs.answer import OutputTail
from browser_shell.jobs.containers.engine_api import ContainerState
from browser_shell.jobs.containers.run import ContainerRun
from support.fake_engine import IMAGE
from support.fakes import FakeClock
from support.job_plans import RUN

STANDARD_ERROR = 2


class ScriptedApi:
    """An engine whose container writes exactly these pieces and ends."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    @asynccontextmanager
    async def attach(self, container_id: str) -> AsyncIterator[ScriptedApi]:
        yield self

    async def read_out(self) -> Message | None:
        await anyio.lowlevel.checkpoint()
        return Message(STANDARD_ERROR, self._pieces.pop(0)) if self._pieces else None

    async def start(self, container_id: str) -> None: ...

    async def wait(self, container_id: str) -> None: ...

    async def state(self, container_id: str) -> ContainerState:
        return ContainerState(exit_code=0, out_of_memory=False)


async def test_output_beyond_the_log_limit_is_still_passed_on(tmp_path: Path) -> None:
    order = ContainerOrder(
        run_id=RUN,
        image=IMAGE,
        argv=("true",),
        workspace=tmp_path,
        output=tmp_path / "output",
        log_path=tmp_path / "job.log",
        limits=ContainerLimits(timeout_seconds=10, log_bytes=10),
    )
    tail = OutputTail()
    api: Any = ScriptedApi(b"first\n", b"second\n", b"third\n", b"1 failed\n")
    with ContainerRun(api=api, container_id="c0ffee", order=order, on_output=tail.add, clock=FakeClock()) as run:
        await run.run_to_end()
    assert (tmp_path / "job.log").read_bytes() == b"first\nseco"
    assert run.log_cut
    assert tail.last_lines(10) == "first\nsecond\nthird\n1 failed"
