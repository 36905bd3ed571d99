"""Detects the end of processes without which Chromium keeps running but loads no page.

- Network service: Chromium restarts it, but without the proxy settings of the existing browser contexts.
- Zygote, from which renderers are forked: Chromium does not restart it.

A page can end both by exhausting the process limit. The supervisor then restarts the browser.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio

_POLL_SECONDS = 0.5


async def wait_for_critical_process_exit(browser_pid: int) -> str:
    """Wait until a critical process below this browser process has ended; return its name."""
    ended: list[str] = []

    async def watch(name: str, matches: Callable[[int], bool]) -> None:
        while (pid := next(filter(matches, _descendants(browser_pid)), None)) is None:  # noqa: ASYNC110  no event
            await anyio.sleep(_POLL_SECONDS)
        await _wait_for_exit(pid)
        ended.append(name)
        watchers.cancel_scope.cancel()

    async with anyio.create_task_group() as watchers:
        watchers.start_soon(watch, "network service", _is_network_service)
        watchers.start_soon(watch, "zygote", _is_zygote)
    return ended[0]


async def _wait_for_exit(pid: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)


def _is_network_service(pid: int) -> bool:
    return b"--utility-sub-type=network.mojom.NetworkService" in _command_line(pid)


def _is_zygote(pid: int) -> bool:
    """Check for the outermost zygote, which ends when the zygote below it ends.

    The inner zygote has the same command line, and so has a renderer right after its fork. Their parent is a zygote.
    """
    return _has_zygote_command_line(pid) and not _has_zygote_command_line(_parent_of(pid))


def _has_zygote_command_line(pid: int) -> bool:
    command_line = _command_line(pid)
    return b"--type=zygote" in command_line and b"--no-zygote-sandbox" not in command_line


def _descendants(pid: int) -> Iterator[int]:
    """List the processes below this one, parents first. Processes that start or end meanwhile may be missed."""
    with suppress(OSError):  # The process has ended.
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # The thread has ended.
                for child in map(int, (thread / "children").read_text(encoding="ascii").split()):
                    yield child
                    yield from _descendants(child)


def _command_line(pid: int) -> bytes:
    """Return the arguments separated by NUL bytes, or by spaces in Chromium's children; empty after the exit."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent_of(pid: int) -> int:
    """Return the parent's pid; 0 after the exit of the process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
