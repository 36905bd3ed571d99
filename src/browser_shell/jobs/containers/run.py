"""One run in a container that exists already: its output, its hand-over, its deadline, its end."""

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
from browser_shell.jobs.containers.log_file import BoundedLog

_HANDOVER_STREAM = 1
_ENDED_BY_THE_INIT = 124
_SECONDS_TO_DIE = 10
_DISCARDED_BYTES_PER_SECOND = 20_000_000
"""Output beyond the limit is read no faster: a flood must not cost the server a core."""


@contextmanager
def own_disk_faults() -> Iterator[None]:
    """A run whose output cannot be kept is not a run that succeeded."""
    try:
        yield
    except OSError as error:
        raise SandboxUnavailable(f"the server could not keep what a container wrote: {error.strerror}") from error


class ContainerRun:
    """From start to end of one container. Whoever made it removes it."""

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
        self._out_of_time = False
        with own_disk_faults():
            self.log = BoundedLog(order.log_path, max_bytes=order.limits.log_bytes)
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
        self.log.close()
        self.handover.close()

    async def to_the_end(self) -> ContainerState:
        """Raises: SandboxUnavailable when the engine fails meanwhile."""
        faults: ExceptionGroup[SandboxUnavailable] | None = None
        async with self._api.attach(self._container_id) as stream:
            await self._api.start(self._container_id)
            self.started = self._clock.monotonic()
            try:
                async with anyio.create_task_group() as watch:
                    watch.start_soon(self._keep_deadline)
                    await self._read(stream)
                    await self._api.wait(self._container_id)
                    watch.cancel_scope.cancel()
            except* SandboxUnavailable as group:
                faults = group
        if faults is not None:
            raise SandboxUnavailable(str(faults.exceptions[0])) from faults
        return await self._api.state(self._container_id)

    def report(self, *, image_id: str, state: ContainerState, timings: ContainerTimings) -> ContainerReport:
        return ContainerReport(
            container_id=self._container_id,
            image_id=image_id,
            end=self._why_it_ended(state),
            exit_code=state.exit_code,
            log_size=self.log.size,
            log_cut=self.log.cut,
            timings=timings,
            output_complete=self.handover.complete,
            refused=tuple(self.handover.refused),
            refused_count=self.handover.refused_count,
        )

    def _why_it_ended(self, state: ContainerState) -> ContainerEnd:
        # A program that ended in time may still be handing over when the time is up.
        if self._out_of_time and (state.exit_code == _ENDED_BY_THE_INIT or not self.handover.complete):
            return ContainerEnd.TIMED_OUT
        # One process of many may have been killed for memory without the program failing for it.
        if (state.out_of_memory or self.handover.out_of_memory) and state.exit_code != 0:
            return ContainerEnd.OUT_OF_MEMORY
        return ContainerEnd.OUTPUT_FULL if self.handover.full else ContainerEnd.EXITED

    async def _keep_deadline(self) -> None:
        await anyio.sleep(self._order.limits.timeout_seconds)
        self._out_of_time = True
        # The init kills every process but itself, hands /output over and ends.
        await self._api.signal(self._container_id, "SIGTERM")
        await anyio.sleep(HANDOVER_SECONDS)
        await self._api.signal(self._container_id, "SIGKILL")
        await anyio.sleep(_SECONDS_TO_DIE)
        raise SandboxUnavailable("the container engine could not end a container")

    async def _read(self, stream: Stream) -> None:
        while True:
            with engine_faults("tell what a container writes"):
                message = await stream.read_out()
            if message is None:
                return
            if message.stream == _HANDOVER_STREAM:
                with own_disk_faults():
                    await anyio.to_thread.run_sync(self.handover.feed, message.data)
            else:
                await self._keep(message.data)

    async def _keep(self, data: bytes) -> None:
        if self.first_output is None:
            self.first_output = self._clock.monotonic()
        if self.log.room > 0:
            with own_disk_faults():
                await anyio.to_thread.run_sync(self.log.write, data)
            self._on_output(data)
        else:
            self.log.cut = True
            # The log keeps the beginning, and whoever listens the end, so what comes after the limit is still heard.
            self._on_output(data)
            await anyio.sleep(len(data) / _DISCARDED_BYTES_PER_SECOND)
