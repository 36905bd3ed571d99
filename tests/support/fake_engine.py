"""A container engine without containers, for faults that a real one does not produce on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio

from browser_shell.core.containers import ContainerEnd, ContainerOrder, ContainerReport, ContainerTimings
from browser_shell.core.errors import SandboxUnavailable

IMAGE = "sha256:" + "a" * 64


def container_report(
    *, end: ContainerEnd = ContainerEnd.EXITED, exit_code: int = 0, log_size: int = 0, output_complete: bool = True
) -> ContainerReport:
    return ContainerReport(
        container_id="c0ffee",
        end=end,
        exit_code=exit_code,
        log_size=log_size,
        log_cut=False,
        timings=ContainerTimings(created=0.1, started=0.2, first_output=0.3, ended=1.2, removed=1.3),
        output_complete=output_complete,
    )


@dataclass
class ScriptedEngine:
    """Runs nothing. Writes the given files and output, and reports the given end."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    output: bytes = b"1 passed\n"
    end: ContainerEnd = ContainerEnd.EXITED
    exit_code: int = 0
    swept: list[str] = field(default_factory=list)
    orders: list[ContainerOrder] = field(default_factory=list)
    started: list[str] = field(default_factory=list)

    async def image_id(self, image: str) -> str:
        return IMAGE

    async def run(
        self,
        order: ContainerOrder,
        *,
        on_output: Callable[[bytes], None],
        before_start: Callable[[str], Awaitable[None]],
    ) -> ContainerReport:
        self.orders.append(order)
        await before_start("c0ffee")
        self.started.append(order.run_id)
        await self.work(order)
        on_output(self.output)
        order.log_path.write_bytes(self.output)
        for name, content in self.files.items():
            path = order.output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return container_report(end=self.end, exit_code=self.exit_code, log_size=len(self.output))

    async def work(self, order: ContainerOrder) -> None:
        """Do nothing between start and end. Subclasses override this."""

    async def sweep(self, before_remove: Callable[[str, str], Awaitable[None]]) -> list[str]:
        removed: list[str] = []
        while self.swept:
            await before_remove(self.swept[0], "c0ffee")
            removed.append(self.swept.pop(0))
        return removed


@dataclass
class HangingEngine(ScriptedEngine):
    """A job that never ends by itself."""

    running: anyio.Event = field(default_factory=anyio.Event)
    killed: bool = False

    async def work(self, order: ContainerOrder) -> None:
        self.running.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.killed = True


@dataclass
class LostEngine(ScriptedEngine):
    """An engine that fails in the middle of a run."""

    async def work(self, order: ContainerOrder) -> None:
        raise SandboxUnavailable("the engine went away")
