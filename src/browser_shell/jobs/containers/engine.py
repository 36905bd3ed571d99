"""Runs orders in disposable containers of Docker or Podman, and removes the containers of servers that died."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path

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
from browser_shell.jobs.containers.engine_api import EngineApi, connect
from browser_shell.jobs.containers.run import ContainerRun

log = structlog.get_logger()

_REMOVAL_SECONDS = 60
_OTHERS_READ_AND_ENTER = 0o005


class ServerState(Enum):
    """Whether another job server is running."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"
    """Its lock file cannot be read: the server may run on another machine that shares the engine."""


class ServerLock:
    """A file lock that the kernel releases when this server dies. Containers name it in a label."""

    def __init__(self, directory: Path, server_id: str) -> None:
        self.server_id = server_id
        self.path = directory.absolute() / f"{server_id}.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises: SandboxUnavailable when the directory is not writable or the id is taken."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SandboxUnavailable(f"the lock file of this server cannot be created: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise SandboxUnavailable("another server has the same id") from error
        if not self._is_at_path(descriptor):
            os.close(descriptor)
            raise SandboxUnavailable("the lock file of this server was removed by another process; start again")
        self._descriptor = descriptor

    def _is_at_path(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    @property
    def acquired(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        if self._descriptor is not None:
            # Unlinked while locked, so that no other process locks a file that is about to go.
            self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def server_state(lock_path: Path) -> ServerState:
    """Test another server's lock without blocking."""
    try:
        descriptor = os.open(lock_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ServerState.UNKNOWN
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ServerState.UNKNOWN
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return ServerState.ALIVE
    except OSError:
        return ServerState.UNKNOWN
    else:
        return ServerState.GONE
    finally:
        os.close(descriptor)


class DisposableContainers:
    """The ContainerEngine of `core/ports.py`, over the socket of Docker or Podman."""

    def __init__(self, *, address: str, lock: ServerLock, clock: Clock) -> None:
        self._address = address
        self._lock = lock
        self._clock = clock
        self._runs: set[str] = set()

    async def image_id(self, image: str) -> str:
        async with connect(self._address) as api:
            return await api.image_id(image)

    async def run(
        self,
        order: ContainerOrder,
        *,
        on_output: Callable[[bytes], None],
        before_start: Callable[[str], Awaitable[None]],
    ) -> ContainerReport:
        check_order(order)
        if not self._lock.acquired:
            raise SandboxUnavailable("this server holds no lock, so its containers could not be swept after a crash")
        self._runs.add(order.run_id)
        try:
            await anyio.to_thread.run_sync(_prepare_directories, order)
            async with connect(self._address) as api:
                return await self._run(api, order, on_output, before_start)
        finally:
            self._runs.discard(order.run_id)

    async def sweep(self, before_remove: Callable[[str, str], Awaitable[None]]) -> list[str]:
        removed: list[str] = []
        async with connect(self._address) as api:
            labelled = await api.labelled(SERVER_LABEL)
            abandoned = await anyio.to_thread.run_sync(self._abandoned, labelled)
            for container_id, run_id in abandoned.items():
                await before_remove(run_id, container_id)
                if await _remove(api, container_id):
                    removed.append(run_id)
                    log.warning("container_swept", run=run_id, container=container_id)
        if len(removed) == len(abandoned):
            await anyio.to_thread.run_sync(self._remove_stale_locks)
        return removed

    async def _run(
        self,
        api: EngineApi,
        order: ContainerOrder,
        on_output: Callable[[bytes], None],
        before_start: Callable[[str], Awaitable[None]],
    ) -> ContainerReport:
        ordered = self._clock.monotonic()
        image_id = await api.image_id(order.image)
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
                state = await run.run_to_end()
            ended = self._clock.monotonic()
        finally:
            removed = await _remove(api, container_id)
        if not removed:
            raise SandboxUnavailable("the container engine could not remove a container; the next sweep tries again")
        timings = ContainerTimings(
            created=created - ordered,
            started=run.started - ordered,
            first_output=None if run.first_output is None else run.first_output - ordered,
            ended=ended - ordered,
            removed=self._clock.monotonic() - ordered,
        )
        return run.report(state=state, timings=timings)

    def _labels(self, order: ContainerOrder) -> dict[str, str]:
        return {
            RUN_LABEL: order.run_id,
            SERVER_LABEL: self._lock.server_id,
            LOCK_LABEL: str(self._lock.path),
            DEADLINE_LABEL: str(int(self._clock.wall()) + lifetime_seconds(order.limits)),
        }

    def _abandoned(self, labelled: dict[str, dict[str, str]]) -> dict[str, str]:
        """Return the run ids of abandoned containers, by container id."""
        return {
            container_id: labels.get(RUN_LABEL, "")
            for container_id, labels in labelled.items()
            if self._is_abandoned(labels)
        }

    def _is_abandoned(self, labels: dict[str, str]) -> bool:
        """Whether no live server manages the container. In doubt, only when its deadline has passed."""
        if labels.get(SERVER_LABEL) == self._lock.server_id:
            return labels.get(RUN_LABEL) not in self._runs
        state = server_state(Path(labels.get(LOCK_LABEL, "")))
        if state is ServerState.UNKNOWN:
            deadline = labels.get(DEADLINE_LABEL, "")
            return deadline.isascii() and deadline.isdigit() and self._clock.wall() > int(deadline)
        return state is ServerState.GONE

    def _remove_stale_locks(self) -> None:
        for path in self._lock.path.parent.glob("*.lock"):
            if server_state(path) is ServerState.GONE:
                path.unlink(missing_ok=True)


async def _remove(api: EngineApi, container_id: str) -> bool:
    """Return whether the container is gone. Shielded: a cancelled caller must not leave it running."""
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


def _prepare_directories(order: ContainerOrder) -> None:
    try:
        mode = order.workspace.stat().st_mode
        if not stat.S_ISDIR(mode) or ~mode & _OTHERS_READ_AND_ENTER:
            raise SandboxUnavailable(
                "the workspace must be a directory that every account may read: jobs run under another account"
            )
        order.output.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(order.output.iterdir()):
            raise SandboxUnavailable("the output directory of a run must be empty")
    except OSError as error:
        raise SandboxUnavailable(f"the directories of a run could not be prepared: {error.strerror}") from error
