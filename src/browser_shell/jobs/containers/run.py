"""One run in a container that was already created: its log, its hand-over, its deadline and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO

import anyio
import anyio.to_thread
from aiodocker.stream import Stream

from browser_shell.core.containers import ContainerEnd, ContainerOrder, ContainerReport, ContainerTimings
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.ports import Clock
from browser_shell.jobs.containers.creation import HANDOVER_SECONDS
from browser_shell.jobs.containers.engine_api import ContainerState, EngineApi, engine_call
from browser_shell.jobs.containers.handover import HandoverReader
from browser_shell.jobs.output_files import create_new_file, write_all

_HANDOVER_STREAM = 1
_INIT_TIMEOUT_EXIT_CODE = 124
_KILL_SECONDS = 10
_DISCARD_BYTES_PER_SECOND = 20_000_000
"""Output beyond the log's limit is read no faster, so that a flood does not use a whole core of the server."""


@contextmanager
def _disk_faults() -> Iterator[None]:
    """Convert OSError: a run whose output cannot be stored has not succeeded."""
    try:
        yield
    except OSError as error:
        raise SandboxUnavailable(f"the server could not store a container's output: {error.strerror}") from error


@dataclass(slots=True, kw_only=True)
class ContainerRun:
    """A container from its start to its end. The caller creates and removes the container."""

    api: EngineApi
    container_id: str
    order: ContainerOrder
    on_output: Callable[[bytes], None]
    clock: Clock
    log: FileIO = field(init=False)
    log_size: int = 0
    log_cut: bool = False
    handover: HandoverReader = field(init=False)
    deadline_passed: bool = False
    started: float = 0.0
    first_output: float | None = None

    def __post_init__(self) -> None:
        limits = self.order.limits
        with _disk_faults():
            self.log = create_new_file(self.order.log_path)
        self.handover = HandoverReader(
            directory=self.order.output, max_bytes=limits.output_bytes, max_entries=limits.output_entries
        )

    def __enter__(self) -> ContainerRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()
        self.handover.close()

    async def run_to_end(self) -> ContainerState:
        """Start the container and wait for its end. Raises: SandboxUnavailable when the engine fails."""
        faults: ExceptionGroup[SandboxUnavailable] | None = None
        async with self.api.attach(self.container_id) as stream:
            await self.api.start(self.container_id)
            self.started = self.clock.monotonic()
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._enforce_deadline)
                    await self._read(stream)
                    await self.api.wait(self.container_id)
                    tasks.cancel_scope.cancel()
            except* SandboxUnavailable as group:
                faults = group
        if faults is not None:
            raise SandboxUnavailable(str(faults.exceptions[0])) from faults
        return await self.api.state(self.container_id)

    def report(self, *, state: ContainerState, timings: ContainerTimings) -> ContainerReport:
        return ContainerReport(
            container_id=self.container_id,
            end=self._end(state),
            exit_code=state.exit_code,
            log_size=self.log_size,
            log_cut=self.log_cut,
            timings=timings,
            output_complete=self.handover.complete,
            refused=tuple(self.handover.refused),
            refused_count=self.handover.refused_count,
        )

    def _end(self, state: ContainerState) -> ContainerEnd:
        # A program that ended in time may still be handing over its output at the deadline.
        if self.deadline_passed and (state.exit_code == _INIT_TIMEOUT_EXIT_CODE or not self.handover.complete):
            return ContainerEnd.TIMED_OUT
        # The kernel may have killed a child process without making the program fail.
        if (state.out_of_memory or self.handover.out_of_memory) and state.exit_code != 0:
            return ContainerEnd.OUT_OF_MEMORY
        return ContainerEnd.OUTPUT_FULL if self.handover.full else ContainerEnd.EXITED

    async def _enforce_deadline(self) -> None:
        await anyio.sleep(self.order.limits.timeout_seconds)
        self.deadline_passed = True
        # On SIGTERM the init kills every other process, hands over /output and exits.
        await self.api.signal(self.container_id, "SIGTERM")
        await anyio.sleep(HANDOVER_SECONDS)
        await self.api.signal(self.container_id, "SIGKILL")
        await anyio.sleep(_KILL_SECONDS)
        raise SandboxUnavailable("the container engine could not end a container")

    async def _read(self, stream: Stream) -> None:
        while True:
            with engine_call("read a container's output", seconds=None):
                message = await stream.read_out()
            if message is None:
                return
            if message.stream == _HANDOVER_STREAM:
                with _disk_faults():
                    await anyio.to_thread.run_sync(self.handover.feed, message.data)
            else:
                await self._store_output(message.data)

    async def _store_output(self, data: bytes) -> None:
        if self.first_output is None:
            self.first_output = self.clock.monotonic()
        room = self.order.limits.log_bytes - self.log_size
        self.log_cut = self.log_cut or len(data) > room
        if room > 0:
            with _disk_faults():
                await anyio.to_thread.run_sync(write_all, self.log, data[:room])
            self.log_size += min(len(data), room)
        # The log keeps the beginning; `on_output` also receives the end.
        self.on_output(data)
        if room <= 0:
            await anyio.sleep(len(data) / _DISCARD_BYTES_PER_SECOND)
