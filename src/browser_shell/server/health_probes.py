"""How to tell whether each part of the browser side is well, without using it for anything."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from browser_shell.browser.chromium.supervisor import BrowserSupervisor
from browser_shell.ops.health import Probe
from browser_shell.server.browser_parts import check_programs
from browser_shell.settings import Settings

_CONNECTION_SECONDS = 2.0


def health_probes(settings: Settings, supervisor: BrowserSupervisor, display_socket: Path) -> Mapping[str, Probe]:
    async def display() -> None:
        async with await anyio.connect_unix(display_socket):
            return

    async def chromium() -> None:
        await supervisor.connection(seconds=_CONNECTION_SECONDS)

    async def cdp() -> None:
        connection = await supervisor.connection(seconds=_CONNECTION_SECONDS)
        await connection.devtools.call("Browser.getVersion")

    async def driver() -> None:
        await anyio.to_thread.run_sync(partial(check_programs, settings))

    probes: dict[str, Probe] = {"chromium": chromium, "cdp": cdp, "driver": driver, "egress": supervisor.ask_egress}
    return probes if settings.unsafe_attach_port is not None else {"display": display, **probes}
