"""The engine's HTTP API, shared by Docker and Podman, with a deadline on every call and one kind of error."""

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
"""aiodocker's status for a failed connection."""
_CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """How a container ended, as the engine reports it."""

    exit_code: int
    out_of_memory: bool


@contextmanager
def engine_call(
    step: str, *, ignore: tuple[int, ...] = (), shield: bool = False, seconds: float | None = _CALL_SECONDS
) -> Iterator[None]:
    """Convert the client library's errors to SandboxUnavailable. The engine's own message goes to the log only.

    `ignore` lists HTTP statuses that count as success. Without `seconds`, the caller sets the deadline.
    """
    try:
        with anyio.fail_after(seconds, shield=shield):
            yield
    except aiodocker.DockerError as error:
        if error.status in ignore:
            return
        log.warning("container_engine_refused", step=step, status=error.status, message=error.message)
        reason = "it does not answer" if error.status == _UNREACHABLE else f"status {error.status}"
        raise SandboxUnavailable(f"the container engine could not {step}: {reason}") from error
    except TimeoutError as error:
        log.warning("container_engine_timed_out", step=step)
        raise SandboxUnavailable(f"the container engine took too long to {step}") from error
    except (aiohttp.ClientError, OSError, KeyError, ValueError) as error:
        log.warning("container_engine_failed", step=step, error=repr(error))
        raise SandboxUnavailable(f"the container engine could not {step}: its answer cannot be read") from error


class EngineApi:
    """One connection to an engine. Every method raises SandboxUnavailable when the engine fails."""

    def __init__(self, client: aiodocker.Docker) -> None:
        self._client = client

    async def counts_files(self) -> bool:
        """Whether tmpfs mounts accept `nr_inodes`. Podman (4.3) rejects it."""
        with engine_call("report its version"):
            parts = (await self._client.version()).get("Components") or []
            return not any("podman" in str(part.get("Name")).lower() for part in parts)

    async def image_id(self, image: str) -> str:
        """Return the local id. Nothing is ever pulled."""
        image_id = ""
        with engine_call("look for the image", ignore=(_NOT_FOUND,)):
            image_id = str((await self._client.images.inspect(image))["Id"])
        if not image_id:
            raise SandboxUnavailable(f"the image {image} is not on this machine; build it with `make jobs-image`")
        return image_id

    async def create(self, config: JsonObject, *, name: str) -> str:
        """Return the container's id. Shielded, so that a cancelled caller can still remove the container."""
        with engine_call("make a container", shield=True):
            return (await self._client.containers.create(config, name=name)).id

    @asynccontextmanager
    async def attach(self, container_id: str) -> AsyncIterator[Stream]:
        stream = self._container(container_id).attach(stdout=True, stderr=True)
        try:
            with engine_call("listen to a container"):
                await stream.__aenter__()
            yield stream
        finally:
            try:
                await stream.close()
            except (AssertionError, aiohttp.ClientError, OSError):
                # The engine may have closed the connection first.
                log.debug("container_stream_lost", container=container_id)

    async def start(self, container_id: str) -> None:
        with engine_call("start a container", shield=True):
            await self._container(container_id).start()

    async def signal(self, container_id: str, name: str) -> None:
        """Send a signal. A container that is removed or stopped is not an error."""
        with engine_call("signal a container", ignore=(_NOT_FOUND, _CONFLICT)):
            await self._container(container_id).kill(signal=name)

    async def wait(self, container_id: str) -> None:
        """Return when the container has ended. The caller sets the deadline."""
        with engine_call("wait for a container", seconds=None):
            await self._container(container_id).wait()

    async def state(self, container_id: str) -> ContainerState:
        with engine_call("report how a container ended"):
            state = (await self._container(container_id).show())["State"]
            return ContainerState(exit_code=int(state["ExitCode"]), out_of_memory=state.get("OOMKilled") is True)

    async def remove(self, container_id: str) -> None:
        """Kill and remove a container with its anonymous volumes. A container that is gone is not an error."""
        with engine_call("remove a container", ignore=(_NOT_FOUND,)):
            await self._container(container_id).delete(force=True, v=True)

    async def labelled(self, label: str) -> dict[str, dict[str, str]]:
        """Return the labels of every container with this label, running or not, by container id."""
        with engine_call("list its containers"):
            containers = await self._client.containers.list(all=True, filters=json.dumps({"label": [label]}))
            return {each.id: {str(k): str(v) for k, v in each["Labels"].items()} for each in containers}

    def _container(self, container_id: str) -> DockerContainer:
        return self._client.containers.container(container_id)


@asynccontextmanager
async def connect(address: str) -> AsyncIterator[EngineApi]:
    """Open a client. Raises: SandboxUnavailable, at the first call, when nothing answers at `address`."""
    with engine_call("be reached"):
        client = aiodocker.Docker(url=address)
    try:
        yield EngineApi(client)
    finally:
        with anyio.CancelScope(shield=True):
            await client.close()
