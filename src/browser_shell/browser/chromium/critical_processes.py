"""Processes of Chromium without which it looks alive and is of no use.

The network service: Chromium replaces it in silence, and the replacement knows nothing of the proxy that each session's
context was given, so pages go nowhere. The zygote that renderers come from: Chromium never replaces it, and no page
opens again. A page can bring both about by using up processes. A browser that lost one is ended like one that crashed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import anyio

from browser_shell.process.descendants import command_line, descendants, parent_of

_LOOK_SECONDS = 0.5


async def wait_for_critical_process_exit(browser_pid: int) -> str:
    """Returns the name of the part of the browser below this process that was there and has ended."""
    ended: list[str] = []

    async def watch(name: str, belongs: Callable[[int], bool]) -> None:
        while (pid := next(filter(belongs, descendants(browser_pid)), None)) is None:  # noqa: ASYNC110  nobody tells
            await anyio.sleep(_LOOK_SECONDS)
        await _end_of(pid)
        ended.append(name)
        parts.cancel_scope.cancel()

    async with anyio.create_task_group() as parts:
        parts.start_soon(watch, "network service", _is_network_service)
        parts.start_soon(watch, "zygote", _is_zygote)
    return ended[0]


async def _end_of(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)


def _is_network_service(pid: int) -> bool:
    return b"--utility-sub-type=network.mojom.NetworkService" in _words(pid)


def _is_zygote(pid: int) -> bool:
    """The first process of the zygotes' own namespace. It ends with the zygote below it; a renderer that was just
    forked from there still has a zygote's words, and is none.
    """
    return _has_zygotes_words(pid) and not _has_zygotes_words(parent_of(pid))


def _has_zygotes_words(pid: int) -> bool:
    words = _words(pid)
    return b"--type=zygote" in words and b"--no-zygote-sandbox" not in words


def _words(pid: int) -> bytes:
    """Chromium writes the words of its children anew, as one."""
    return b" ".join(command_line(pid))
