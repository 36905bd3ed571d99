"""Runs orders in disposable containers of Docker or Podman, and removes whatever was left behind."""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
import structlog

from browser_shell.core.containers import ContainerOrder, ContainerReport, ContainerTimings
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.ports import Clock
from browser_shell.jobs.containers.creation import (
    DEADLINE_LABEL,
    LOCK_LABEL,
    RUN_LABEL,
    SERVER_LABEL,
    check_order,
    container_config,
    lifetime_seconds,
)
from browser_shell.jobs.containers.engine_api import EngineApi, LabelledContainer, connect
from browser_shell.jobs.containers.leftovers import is_left_behind
from browser_shell.jobs.containers.run import ContainerRun
from browser_shell.jobs.containers.server_lock import ServerLock, forget_gone_servers

log = structlog.get_logger()

_REMOVAL_SECONDS = 60
_OTHERS_MAY_READ_AND_ENTER = 0o005


class DisposableContainers:
    """The ContainerEngine of `core/ports.py`, behind the socket of Docker or Podman."""

    def __init__(self, *, address: str, lock: ServerLock, clock: Clock) -> None:
        self._address = address
        self._lock = lock
        self._clock = clock
        self._runs: set[str] = set()

    async def image_id(self, image: str) -> str:
        async with connect(self._address) as api:
            return await self._image_id(api, image)

    async def run(
        self,
        order: ContainerOrder,
        *,
        on_output: Callable[[bytes], None],
        before_start: Callable[[str], Awaitable[None]],
    ) -> ContainerReport:
        check_order(order)
        if not self._lock.held:
            raise SandboxUnavailable(
                "this server holds no lock, so what it leaves behind could not be told from others'"
            )
        self._runs.add(order.run_id)
        try:
            await anyio.to_thread.run_sync(_prepare_places, order)
            async with connect(self._address) as api:
                return await self._run(api, order, on_output, before_start)
        finally:
            self._runs.discard(order.run_id)

    async def sweep(self, before_remove: Callable[[str, str], Awaitable[None]]) -> list[str]:
        removed: list[str] = []
        async with connect(self._address) as api:
            found = [each for each in await api.labelled(SERVER_LABEL) if await self._is_left_behind(each)]
            for container in found:
                run_id = container.labels.get(RUN_LABEL, "")
                await before_remove(run_id, container.container_id)
                if await _remove(api, container.container_id):
                    removed.append(run_id)
                    log.warning("container_swept", run=removed[-1], container=container.container_id)
        if len(removed) == len(found):
            await anyio.to_thread.run_sync(forget_gone_servers, self._lock.path.parent)
        return removed

    async def _run(
        self,
        api: EngineApi,
        order: ContainerOrder,
        on_output: Callable[[bytes], None],
        before_start: Callable[[str], Awaitable[None]],
    ) -> ContainerReport:
        ordered = self._clock.monotonic()
        image_id = await self._image_id(api, order.image)
        config = container_config(
            order, image_id=image_id, labels=self._labels(order), counts_files=await api.counts_files()
        )
        container_id = await api.create(config, name=f"browser-shell-{order.run_id}")
        created = self._clock.monotonic()
        removed = False
        try:
            await before_start(container_id)
            with ContainerRun(
                api=api, container_id=container_id, order=order, on_output=on_output, clock=self._clock
            ) as run:
                state = await run.to_the_end()
            ended = self._clock.monotonic()
        finally:
            removed = await _remove(api, container_id)
        if not removed:
            raise SandboxUnavailable("the container engine could not remove a container; it will be tried again")
        timings = ContainerTimings(
            created=created - ordered,
            started=run.started - ordered,
            first_output=None if run.first_output is None else run.first_output - ordered,
            ended=ended - ordered,
            removed=self._clock.monotonic() - ordered,
        )
        return run.report(image_id=image_id, state=state, timings=timings)

    async def _image_id(self, api: EngineApi, image: str) -> str:
        found = await api.image_id(image)
        if found is None:
            raise SandboxUnavailable(
                f"the image {image} is not on this machine; `make jobs-image` builds the one for jobs"
            )
        return found

    def _labels(self, order: ContainerOrder) -> dict[str, str]:
        return {
            RUN_LABEL: order.run_id,
            SERVER_LABEL: self._lock.server_id,
            LOCK_LABEL: str(self._lock.path),
            DEADLINE_LABEL: str(int(self._clock.wall()) + lifetime_seconds(order.limits)),
        }

    async def _is_left_behind(self, container: LabelledContainer) -> bool:
        def look() -> bool:
            return is_left_behind(
                container,
                own_server=self._lock.server_id,
                own_runs=self._runs,
                wall_seconds=self._clock.wall(),
            )

        return await anyio.to_thread.run_sync(look)


async def _remove(api: EngineApi, container_id: str) -> bool:
    """Whether the container is gone. Shielded: a caller that gives up must not leave it running."""
    with anyio.move_on_after(_REMOVAL_SECONDS, shield=True):
        for pause_seconds in (0.2, 1.0, 5.0):
            try:
                await api.remove(container_id)
            except SandboxUnavailable:
                await anyio.sleep(pause_seconds)
            else:
                return True
    log.error("container_not_removed", container=container_id)
    return False


def _prepare_places(order: ContainerOrder) -> None:
    try:
        workspace = order.workspace.stat()
        if not stat.S_ISDIR(workspace.st_mode) or ~workspace.st_mode & _OTHERS_MAY_READ_AND_ENTER:
            raise SandboxUnavailable(
                "the workspace must be a directory that every account may read: jobs have an account of their own"
            )
        order.output.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(order.output.iterdir()):
            raise SandboxUnavailable("the directory for the output of a run must be empty")
    except OSError as error:
        raise SandboxUnavailable(f"the places of a run could not be prepared: {error.strerror}") from error
