"""Keeps the display and the browser up, and hands out the current connection to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import structlog

from browser_shell.browser.chromium import ChromiumSettings, devtools_url, is_process, running_chromium
from browser_shell.browser.devtools import DevTools, DevToolsEvent, DevToolsRefused, connect_devtools
from browser_shell.browser.display import DisplaySettings, RunningDisplay, keep_window_manager, running_display
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.errors import BrowserShellError, BrowserUnavailable, SandboxUnavailable

log = structlog.get_logger()

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_STEADY_SECONDS = 10.0
"""A browser that lived this long was healthy: the next restart is immediate again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserConnection:
    """The browser of this moment. A later generation has none of an earlier one's contexts."""

    devtools: DevTools
    generation: int


class BrowserSupervisor:
    """Owns the browser's life. `run` never returns by itself; everyone else asks for `connection`."""

    def __init__(
        self, *, display: DisplaySettings, chromium: ChromiumSettings, tabs: TabTracker, unsafe_attach_port: int | None
    ) -> None:
        self._display = display
        self._chromium = chromium
        self._tabs = tabs
        self._attach_port = unsafe_attach_port
        self._current: BrowserConnection | None = None
        self._changed = anyio.Event()
        self._generation = 0
        self._last_fault = "the browser has not started yet"

    async def connection(self, *, seconds: float = 5.0) -> BrowserConnection:
        """The live connection, waiting for a restart that is under way. Raises: BrowserUnavailable."""
        with anyio.move_on_after(seconds):
            while self._current is None:
                await self._changed.wait()
        if self._current is None:
            raise BrowserUnavailable(self._last_fault)
        return self._current

    def is_current(self, generation: int) -> bool:
        return self._current is not None and self._current.generation == generation

    async def run(self) -> None:
        """Starts what is needed, and starts it again whenever it ends."""
        if self._attach_port is not None:
            await self._repeat(self._attach)
        else:
            await self._repeat(self._display_life)

    async def _repeat(self, life: Callable[[], Awaitable[None]]) -> None:
        """Runs one life after another, with pauses that grow while lives are short."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            began = anyio.current_time()
            try:
                await life()
                self._last_fault = "the browser ended and is being restarted"
            except* (SandboxUnavailable, DevToolsRefused) as faults:
                self._last_fault = _first_reason(faults)
            lived = anyio.current_time() - began
            pause = _FIRST_PAUSE_SECONDS if lived > _STEADY_SECONDS else min(pause * 2, _LONGEST_PAUSE_SECONDS)
            log.warning("browser_ended", reason=self._last_fault, lived_seconds=round(lived, 1))
            await anyio.sleep(pause)

    async def _display_life(self) -> None:
        async with running_display(self._display) as display, anyio.create_task_group() as tasks:
            tasks.start_soon(keep_window_manager, self._display, display)
            tasks.start_soon(self._keep_chromium, display)
            await display.process.wait()
            tasks.cancel_scope.cancel()

    async def _keep_chromium(self, display: RunningDisplay) -> None:
        async def life() -> None:
            async with running_chromium(self._chromium, display.env) as process:
                url = await devtools_url(self._chromium.port, process=process)
                async with self._connected(url, process.pid) as devtools, anyio.create_task_group() as tasks:
                    tasks.start_soon(_end_when_closed, devtools, tasks.cancel_scope)
                    await process.wait()
                    tasks.cancel_scope.cancel()

        await self._repeat(life)

    async def _attach(self) -> None:
        if self._attach_port is None:
            raise BrowserUnavailable("no port to attach to")
        async with self._connected(await devtools_url(self._attach_port), None) as devtools:
            await devtools.closed.wait()

    @asynccontextmanager
    async def _connected(self, url: str, pid: int | None) -> AsyncIterator[DevTools]:
        self._tabs.forget_everything()
        holder: list[DevTools] = []

        def on_event(event: DevToolsEvent) -> None:
            if holder:
                self._tabs.handle(holder[0], event)

        async with connect_devtools(url, on_event) as devtools:
            holder.append(devtools)
            if pid is not None and not await is_process(devtools, pid):
                raise BrowserUnavailable(
                    f"127.0.0.1:{self._chromium.port} belongs to another browser; free it, or set "
                    "BROWSER_REMOTE_DEBUGGING_PORT"
                )
            await self._tabs.watch(devtools)
            self._generation += 1
            self._announce(BrowserConnection(devtools=devtools, generation=self._generation))
            log.info("browser_ready", generation=self._generation)
            try:
                yield devtools
            finally:
                self._announce(None)

    def _announce(self, connection: BrowserConnection | None) -> None:
        self._current = connection
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def _end_when_closed(devtools: DevTools, scope: anyio.CancelScope) -> None:
    await devtools.closed.wait()
    scope.cancel()


def _first_reason(faults: BaseExceptionGroup[BrowserShellError]) -> str:
    first = faults.exceptions[0]
    return _first_reason(first) if isinstance(first, BaseExceptionGroup) else first.public_message
