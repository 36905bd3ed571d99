"""Chromium's network service: a process of its own, which Chromium silently replaces when it dies.

The replacement knows nothing of the proxy that each session's context was given. Pages would go nowhere until every
session is closed, so a browser whose network service has died is ended like one that crashed.
"""

from __future__ import annotations

import os

import anyio

from browser_shell.process.descendants import command_line, descendants

_KIND = b"--utility-sub-type=network.mojom.NetworkService"
_LOOK_SECONDS = 0.5


async def network_service_ended(browser_pid: int) -> None:
    """Returns when the network service of the browser below this process has been seen and has ended."""
    while (pid := _find(browser_pid)) is None:  # noqa: ASYNC110  nothing tells of its start
        await anyio.sleep(_LOOK_SECONDS)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)


def _find(browser_pid: int) -> int | None:
    return next((pid for pid in descendants(browser_pid) if _KIND in command_line(pid)), None)
