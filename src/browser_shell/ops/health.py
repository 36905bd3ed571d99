"""Liveness and readiness of the server, over a private unix socket."""

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
_RESPONSE_SECONDS = 5.0
_MAX_RESPONSE_BYTES = 64 * 1024

Probe: TypeAlias = Callable[[], Awaitable[None]]
"""Returns if the part works. Otherwise raises BrowserShellError or OSError with the cause as its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Health of one server."""

    live: bool
    parts: Mapping[str, str] = field(default_factory=dict)
    """The fault of each part; '' for a part that works."""

    @property
    def ready(self) -> bool:
        return self.live and not any(self.parts.values())

    def as_json(self) -> JsonObject:
        return {
            "live": self.live,
            "ready": self.ready,
            "parts": {name: fault or "ok" for name, fault in self.parts.items()},
        }


async def examine(probes: Mapping[str, Probe]) -> Health:
    """Run all probes concurrently. A probe that exceeds PROBE_SECONDS is a fault."""
    parts = dict.fromkeys(probes, "")

    async def run_probe(name: str, probe: Probe) -> None:
        with anyio.move_on_after(PROBE_SECONDS) as deadline:
            try:
                await probe()
            except BrowserShellError as error:
                parts[name] = error.public_message
            except OSError as error:
                parts[name] = error.strerror or type(error).__name__
        if deadline.cancelled_caught:
            parts[name] = f"no answer within {PROBE_SECONDS:.0f} s"

    async with anyio.create_task_group() as tasks:
        for name, probe in probes.items():
            tasks.start_soon(run_probe, name, probe)
    return Health(live=True, parts=parts)


async def serve_health(directory: Path, probes: Mapping[str, Probe]) -> None:
    """Serve `health.sock` in the server's own directory until cancelled."""

    async def respond(client: SocketStream) -> None:
        async with client:
            with anyio.move_on_after(_RESPONSE_SECONDS):
                health = await examine(probes)
                try:
                    await client.send(json.dumps(health.as_json()).encode() + b"\n")
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    path = directory / SOCKET_NAME
    # A killed server leaves its socket behind. The lock on the directory excludes a second server.
    path.unlink(missing_ok=True)
    async with await anyio.create_unix_listener(path, mode=0o600) as listener:
        try:
            await listener.serve(respond)
        finally:
            path.unlink(missing_ok=True)


def ask_health(path: Path) -> Health:
    """Query the server behind this socket; not live when none answers."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_RESPONSE_SECONDS + 1)
            client.connect(str(path))
            with client.makefile("rb") as response:
                health = json.loads(response.read(_MAX_RESPONSE_BYTES))
        parts = {str(name): "" if state == "ok" else str(state) for name, state in health["parts"].items()}
        return Health(live=health["live"] is True, parts=parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Health(live=False)
