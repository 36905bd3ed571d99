"""The engine's API with a deadline on every call, and one kind of error. Docker and Podman speak the same."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import aiodocker
import aiohttp
import anyio
import structlog
from aiodocker.containers import DockerContainer
from aiodocker.stream import Stream

from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.json_values import JsonObject

log = structlog.get_logger()

_NOT_FOUND = 404
_CONFLICT = 409
_UNREACHABLE = 900
"""What aiodocker gives for a connection that failed."""
_CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The engine's word on a container that has ended."""

    exit_code: int
    out_of_memory: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledContainer:
    """A container of some server of ours."""

    container_id: str
    labels: dict[str, str]


@contextmanager
def engine_faults(step: str) -> Iterator[None]:
    """Turns what the engine's client raises into SandboxUnavailable. The engine's own words go to the log only."""
    try:
        yield
    except aiodocker.DockerError as error:
        log.warning("container_engine_refused", step=step, status=error.status, message=error.message)
        reason = "it does not answer" if error.status == _UNREACHABLE else f"status {error.status}"
        raise SandboxUnavailable(f"the container engine could not {step}: {reason}") from error
    except TimeoutError as error:
        log.warning("container_engine_late", step=step)
        raise SandboxUnavailable(f"the container engine took too long to {step}") from error
    except (aiohttp.ClientError, OSError, KeyError, ValueError) as error:
        log.warning("container_engine_fault", step=step, error=repr(error))
        raise SandboxUnavailable(f"the container engine could not {step}: it does not answer as it should") from error


class EngineApi:
    """One connection to an engine."""

    def __init__(self, client: aiodocker.Docker) -> None:
        self._client = client

    async def counts_files(self) -> bool:
        """Podman, as of 4.3, knows no bound for the number of files of a file system in memory."""
        with engine_faults("tell its version"), anyio.fail_after(_CALL_SECONDS):
            parts = (await self._client.version()).get("Components") or []
            return not any("podman" in str(part.get("Name")).lower() for part in parts)

    async def image_id(self, image: str) -> str | None:
        """The local id; None when the image is not there."""
        with engine_faults("look for the image"), anyio.fail_after(_CALL_SECONDS):
            try:
                found = await self._client.images.inspect(image)
            except aiodocker.DockerError as error:
                if error.status == _NOT_FOUND:
                    return None
                raise
            return str(found["Id"])

    async def create(self, config: JsonObject, *, name: str) -> str:
        """Shielded: whoever gives up meanwhile still learns the id, and can remove what was made."""
        with engine_faults("make a container"), anyio.fail_after(_CALL_SECONDS, shield=True):
            made = await self._client.containers.create(config, name=name)
            return made.id

    @asynccontextmanager
    async def attach(self, container_id: str) -> AsyncIterator[Stream]:
        stream = self._of(container_id).attach(stdout=True, stderr=True)
        try:
            with engine_faults("listen to a container"), anyio.fail_after(_CALL_SECONDS):
                await stream.__aenter__()
            yield stream
        finally:
            # Closing an engine's connection that is gone already is no fault.
            try:
                await stream.close()
            except (AssertionError, aiohttp.ClientError, OSError):
                log.debug("container_stream_gone", container=container_id)

    async def start(self, container_id: str) -> None:
        with engine_faults("start a container"), anyio.fail_after(_CALL_SECONDS, shield=True):
            await self._of(container_id).start()

    async def signal(self, container_id: str, name: str) -> None:
        """A container that is no longer there, or no longer runs, has nothing to be told."""
        with engine_faults("signal a container"), anyio.fail_after(_CALL_SECONDS):
            try:
                await self._of(container_id).kill(signal=name)
            except aiodocker.DockerError as error:
                if error.status not in (_NOT_FOUND, _CONFLICT):
                    raise

    async def wait(self, container_id: str) -> None:
        """Returns when the container has ended. The caller sets the deadline."""
        with engine_faults("wait for a container"):
            await self._of(container_id).wait()

    async def state(self, container_id: str) -> ContainerState:
        with engine_faults("tell how a container ended"), anyio.fail_after(_CALL_SECONDS):
            found = (await self._of(container_id).show())["State"]
            return ContainerState(exit_code=int(found["ExitCode"]), out_of_memory=found.get("OOMKilled") is True)

    async def remove(self, container_id: str) -> None:
        """Kills and removes, with whatever was made for it. Nothing to remove is as good."""
        with engine_faults("remove a container"), anyio.fail_after(_CALL_SECONDS):
            try:
                await self._of(container_id).delete(force=True, v=True)
            except aiodocker.DockerError as error:
                if error.status != _NOT_FOUND:
                    raise

    async def labelled(self, label: str) -> list[LabelledContainer]:
        """Every container with this label, running or not."""
        with engine_faults("list its containers"), anyio.fail_after(_CALL_SECONDS):
            found = await self._client.containers.list(all=True, filters=json.dumps({"label": [label]}))
            return [
                LabelledContainer(container_id=each.id, labels={str(k): str(v) for k, v in each["Labels"].items()})
                for each in found
            ]

    def _of(self, container_id: str) -> DockerContainer:
        return self._client.containers.container(container_id)


@asynccontextmanager
async def connect(address: str) -> AsyncIterator[EngineApi]:
    """Raises: SandboxUnavailable, from the first call on, when nothing answers at `address`."""
    with engine_faults("be reached"):
        client = aiodocker.Docker(url=address)
    try:
        yield EngineApi(client)
    finally:
        with anyio.CancelScope(shield=True):
            await client.close()
