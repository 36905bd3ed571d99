"""One run in a container that was already created: its log, its hand-over, its deadline and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import anyio.to_thread
from aiodocker.stream import Stream

from browser_shell.core.containers import ContainerEnd, ContainerOrder, ContainerReport, ContainerTimings
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.ports import Clock
from browser_shell.jobs.containers.creation import HANDOVER_SECONDS
from browser_shell.jobs.containers.engine_api import ContainerState, EngineApi, engine_faults
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


class ContainerRun:
    """A container from its start to its end. The caller creates and removes the container."""

    def __init__(
        self,
        *,
        api: EngineApi,
        container_id: str,
        order: ContainerOrder,
        on_output: Callable[[bytes], None],
        clock: Clock,
    ) -> None:
        self._api = api
        self._container_id = container_id
        self._order = order
        self._on_output = on_output
        self._clock = clock
        self._deadline_passed = False
        with _disk_faults():
            self._log = create_new_file(order.log_path)
        self._log_size = 0
        self.log_cut = False
        self.handover = HandoverReader(
            directory=order.output,
            max_bytes=order.limits.output_bytes,
            max_entries=order.limits.output_entries,
        )
        self.started = 0.0
        self.first_output: float | None = None

    def __enter__(self) -> ContainerRun:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        self.handover.close()

    async def run_to_end(self) -> ContainerState:
        """Start the container and wait for its end. Raises: SandboxUnavailable when the engine fails."""
        faults: ExceptionGroup[SandboxUnavailable] | None = None
        async with self._api.attach(self._container_id) as stream:
            await self._api.start(self._container_id)
            self.started = self._clock.monotonic()
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._enforce_deadline)
                    await self._read(stream)
                    await self._api.wait(self._container_id)
                    tasks.cancel_scope.cancel()
            except* SandboxUnavailable as group:
                faults = group
        if faults is not None:
            raise SandboxUnavailable(str(faults.exceptions[0])) from faults
        return await self._api.state(self._container_id)

    def report(self, *, state: ContainerState, timings: ContainerTimings) -> ContainerReport:
        return ContainerReport(
            container_id=self._container_id,
            end=self._end(state),
            exit_code=state.exit_code,
            log_size=self._log_size,
            log_cut=self.log_cut,
            timings=timings,
            output_complete=self.handover.complete,
            refused=tuple(self.handover.refused),
            refused_count=self.handover.refused_count,
        )

    def _end(self, state: ContainerState) -> ContainerEnd:
        # A program that ended in time may still be handing over its output at the deadline.
        if self._deadline_passed and (state.exit_code == _INIT_TIMEOUT_EXIT_CODE or not self.handover.complete):
            return ContainerEnd.TIMED_OUT
        # The kernel may have killed a child process without making the program fail.
        if (state.out_of_memory or self.handover.out_of_memory) and state.exit_code != 0:
            return ContainerEnd.OUT_OF_MEMORY
        return ContainerEnd.OUTPUT_FULL if self.handover.full else ContainerEnd.EXITED

    async def _enforce_deadline(self) -> None:
        await anyio.sleep(self._order.limits.timeout_seconds)
        self._deadline_passed = True
        # On SIGTERM the init kills every other process, hands over /output and exits.
        await self._api.signal(self._container_id, "SIGTERM")
        await anyio.sleep(HANDOVER_SECONDS)
        await self._api.signal(self._container_id, "SIGKILL")
        await anyio.sleep(_KILL_SECONDS)
        raise SandboxUnavailable("the container engine could not end a container")

    async def _read(self, stream: Stream) -> None:
        while True:
            with engine_faults("read a container's output"):
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
            self.first_output = self._clock.monotonic()
        room = self._order.limits.log_bytes - self._log_size
        self.log_cut = self.log_cut or len(data) > room
        if room > 0:
            with _disk_faults():
                await anyio.to_thread.run_sync(write_all, self._log, data[:room])
            self._log_size += min(len(data), room)
        # The log keeps the beginning; `on_output` also receives the end.
        self._on_output(data)
        if room <= 0:
            await anyio.sleep(len(data) / _DISCARD_BYTES_PER_SECOND)
