"""Whether the server lives and whether it could serve a call now, asked over a private unix socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.abc import SocketStream

from browser_shell.core.errors import BrowserShellError
from browser_shell.core.json_values import JsonObject

SOCKET_NAME = "health.sock"
PROBE_SECONDS = 3.0
_ANSWER_SECONDS = 5.0
_MAX_ANSWER_BYTES = 64 * 1024

Probe: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when the part is well. Raises BrowserShellError or OSError, whose text says what is wrong, when it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a server says of itself. `parts` has '' for each part that is well."""

    live: bool
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return self.live and not any(self.parts.values())

    def as_json(self) -> JsonObject:
        return {
            "live": self.live,
            "ready": self.ready,
            "parts": {name: wrong or "ok" for name, wrong in self.parts.items()},
        }


async def examine(probes: Mapping[str, Probe]) -> Health:
    """Asks every part at the same time; one that does not answer in time is not well."""
    parts = dict.fromkeys(probes, "")

    async def ask(name: str, probe: Probe) -> None:
        with anyio.move_on_after(PROBE_SECONDS) as deadline:
            try:
                await probe()
            except BrowserShellError as wrong:
                parts[name] = wrong.public_message
            except OSError as wrong:
                parts[name] = wrong.strerror or type(wrong).__name__
        if deadline.cancelled_caught:
            parts[name] = f"no answer within {PROBE_SECONDS:.0f} s"

    async with anyio.create_task_group() as tasks:
        for name, probe in probes.items():
            tasks.start_soon(ask, name, probe)
    return Health(live=True, parts=parts)


async def serve_health(directory: Path, probes: Mapping[str, Probe]) -> None:
    """Answers on `health.sock` in a directory that this server has for itself, until cancelled."""

    async def answer(client: SocketStream) -> None:
        async with client:
            with anyio.move_on_after(_ANSWER_SECONDS):
                health = await examine(probes)
                try:
                    await client.send(json.dumps(health.as_json()).encode() + b"\n")
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    path = directory / SOCKET_NAME
    # A server that was killed leaves its socket; the lock on the directory says that nobody else uses it.
    path.unlink(missing_ok=True)
    async with await anyio.create_unix_listener(path, mode=0o600) as listener:
        try:
            await listener.serve(answer)
        finally:
            path.unlink(missing_ok=True)


def ask_health(path: Path) -> Health:
    """What the server behind this socket says of itself; not live when there is none."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_ANSWER_SECONDS + 1)
            client.connect(str(path))
            with client.makefile("rb") as answer:
                said = json.loads(answer.read(_MAX_ANSWER_BYTES))
        parts = {str(name): "" if state == "ok" else str(state) for name, state in said["parts"].items()}
        return Health(live=said["live"] is True, parts=parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Health(live=False)
