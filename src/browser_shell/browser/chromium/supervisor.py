"""Keeps the display and the browser up, and hands out the current connection to it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import structlog
from anyio.abc import SocketListener, SocketStream

from browser_shell.browser.chromium.critical_processes import wait_for_critical_process_exit
from browser_shell.browser.chromium.directories import make_fresh_folders, seal_temporary
from browser_shell.browser.chromium.display import DisplaySettings, RunningDisplay, keep_window_manager, running_display
from browser_shell.browser.chromium.jail import JailSettings, running_jail
from browser_shell.browser.chromium.process import (
    ChromiumSettings,
    Connect,
    chromium_argv,
    chromium_env,
    connect_directly,
    devtools_url,
    is_process,
    unjailed_chromium,
)
from browser_shell.browser.devtools.client import DevTools, DevToolsEvent, DevToolsRefused, connect_devtools
from browser_shell.browser.devtools.relay import own_uids, relay
from browser_shell.browser.devtools.relay_repair import UnderWay
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.errors import BrowserShellError, BrowserUnavailable, JailUnavailable, SandboxUnavailable

log = structlog.get_logger()

ServeEgress = Callable[[SocketListener], Coroutine[None, None, None]]

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_PROBE_SECONDS = 2.0
_NEWS_SECONDS = 0.5
_STEADY_SECONDS = 10.0
"""A browser that lived this long was healthy: the next restart is immediate again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserConnection:
    """The browser of this moment. A later generation has none of an earlier one's contexts."""

    devtools: DevTools
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNetwork:
    """Sockets for a browser that is not in a jail: weaker, and only by an explicit unsafe setting."""

    proxy_listener: socket.socket
    attach_port: int | None
    """Somebody else's browser to drive; None for our own."""


class BrowserSupervisor:
    """Owns the browser's life. `run` never returns by itself; everyone else asks for `connection`."""

    def __init__(
        self,
        *,
        display: DisplaySettings,
        chromium: ChromiumSettings,
        jail: JailSettings,
        driver_listener: socket.socket | None,
        under_way: UnderWay,
        serve_egress: ServeEgress,
        tabs: TabTracker,
        unsafe_network: OpenNetwork | None,
    ) -> None:
        self._display = display
        self._chromium = chromium
        self._jail = jail
        self._driver_listener = driver_listener
        self._under_way = under_way
        self._serve_egress = serve_egress
        self._tabs = tabs
        self._unsafe = unsafe_network
        self._current: BrowserConnection | None = None
        self._changed = anyio.Event()
        self._generation = 0
        self._last_fault = "the browser has not started yet"
        self._connect_to_proxy: Connect | None = None

    async def ask_egress(self) -> None:
        """Calls the egress proxy from inside the jail, as nobody, and expects to be refused.

        Raises: BrowserUnavailable when there is no jail, or the proxy does not answer.
        """
        await self.connection(seconds=_PROBE_SECONDS)
        if self._connect_to_proxy is None:
            return  # Without a jail the proxy is an ordinary listener of this process.
        try:
            with anyio.fail_after(_PROBE_SECONDS):
                async with await SocketStream.from_socket(await self._connect_to_proxy()) as stream:
                    await stream.send(b"GET http://health.invalid/ HTTP/1.1\r\nHost: health.invalid\r\n\r\n")
                    answer = await stream.receive()
        except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError) as cause:
            raise BrowserUnavailable("the egress proxy does not answer") from cause
        if not answer.startswith(b"HTTP/1.1 403"):
            raise BrowserUnavailable("the egress proxy let a stranger through")

    async def connection(self, *, seconds: float = 5.0) -> BrowserConnection:
        """The live connection, waiting for a restart that is under way. Raises: BrowserUnavailable."""
        if self._current is None:
            with anyio.move_on_after(seconds):
                while self._current is None:
                    await self._changed.wait()
        if self._current is None:
            raise BrowserUnavailable(self._last_fault)
        return self._current

    def is_current(self, generation: int) -> bool:
        return self._current is not None and self._current.generation == generation

    async def ends_soon(self, generation: int) -> bool:
        """Whether this browser is gone, or turns out to be within a moment: whoever talks to it may know first."""
        with anyio.move_on_after(_NEWS_SECONDS):
            while self.is_current(generation):
                await self._changed.wait()
        return not self.is_current(generation)

    async def run(self) -> None:
        """Starts what is needed, and starts it again whenever it ends.

        Raises: JailUnavailable when the very first start shows that there can be no jail here.
        """
        if self._unsafe is not None and self._unsafe.attach_port is not None:
            await self._repeat(partial(self._attached_life, self._unsafe, self._unsafe.attach_port))
        else:
            await self._repeat(self._display_life)

    async def _repeat(self, life: Callable[[], Awaitable[None]]) -> None:
        """Runs one life after another, with pauses that grow while lives are short."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            began = anyio.current_time()
            hopeless: JailUnavailable | None = None
            try:
                await life()
                self._last_fault = "the browser ended and is being restarted"
            except* (SandboxUnavailable, DevToolsRefused) as faults:
                fault = _first_of(faults)
                self._last_fault = fault.public_message
                if isinstance(fault, JailUnavailable) and self._generation == 0:
                    hopeless = fault
            if hopeless is not None:
                raise hopeless
            lived = anyio.current_time() - began
            pause = _FIRST_PAUSE_SECONDS if lived > _STEADY_SECONDS else min(pause * 2, _LONGEST_PAUSE_SECONDS)
            log.warning("browser_ended", reason=self._last_fault, lived_seconds=round(lived, 1))
            await anyio.sleep(pause)

    async def _display_life(self) -> None:
        async with running_display(self._display) as display, anyio.create_task_group() as tasks:
            tasks.start_soon(keep_window_manager, self._display, display)
            life = self._jailed_life if self._unsafe is None else partial(self._unjailed_life, self._unsafe)
            tasks.start_soon(self._repeat, partial(life, display))
            await display.process.wait()
            tasks.cancel_scope.cancel()

    async def _jailed_life(self, display: RunningDisplay) -> None:
        make_fresh_folders(self._chromium)
        env = chromium_env(self._chromium, display.env)
        async with (
            running_jail(self._jail, chromium_argv(self._chromium), env) as jail,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._serve_egress, await SocketListener.from_socket(jail.proxy_listener.dup()))
            if self._driver_listener is not None:
                tasks.start_soon(self._relay, self._driver_listener, jail.connect)
            url = await devtools_url(self._chromium.port, jail.connect, process=jail.process)
            seal_temporary(self._chromium)
            self._connect_to_proxy = jail.connect_to_proxy
            async with self._connected(url, jail.connect, None) as devtools:
                tasks.start_soon(_end_when_closed, devtools, tasks.cancel_scope)
                tasks.start_soon(_end_without_vital_part, jail.process.pid, tasks.cancel_scope)
                await jail.process.wait()
                tasks.cancel_scope.cancel()

    async def _relay(self, listener: socket.socket, connect: Connect) -> None:
        account = self._chromium.account
        await relay(
            listener,
            connect,
            allowed_uids=own_uids(account.uid if account else None),
            under_way=self._under_way,
        )

    async def _unjailed_life(self, network: OpenNetwork, display: RunningDisplay) -> None:
        make_fresh_folders(self._chromium)
        connect = partial(connect_directly, self._chromium.port)
        async with (
            unjailed_chromium(self._chromium, display.env) as process,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._serve_egress, await SocketListener.from_socket(network.proxy_listener.dup()))
            url = await devtools_url(self._chromium.port, connect, process=process)
            seal_temporary(self._chromium)
            async with self._connected(url, connect, process.pid) as devtools:
                tasks.start_soon(_end_when_closed, devtools, tasks.cancel_scope)
                await process.wait()
                tasks.cancel_scope.cancel()

    async def _attached_life(self, network: OpenNetwork, port: int) -> None:
        connect = partial(connect_directly, port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._serve_egress, await SocketListener.from_socket(network.proxy_listener.dup()))
            async with self._connected(await devtools_url(port, connect), connect, None) as devtools:
                await devtools.closed.wait()
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _connected(self, url: str, connect: Connect, pid: int | None) -> AsyncIterator[DevTools]:
        holder: list[DevTools] = []

        def on_event(event: DevToolsEvent) -> None:
            if holder:
                self._tabs.handle(holder[0], event)

        async with connect_devtools(url, on_event, through=await connect()) as devtools:
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
                holder.clear()  # What it still tells on its way out is news of nothing.
                self._tabs.forget_everything()

    def _announce(self, connection: BrowserConnection | None) -> None:
        self._current = connection
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def _end_without_vital_part(browser_pid: int, life: anyio.CancelScope) -> None:
    log.warning("browser_critical_process_died", part=await wait_for_critical_process_exit(browser_pid))
    life.cancel()


async def _end_when_closed(devtools: DevTools, scope: anyio.CancelScope) -> None:
    await devtools.closed.wait()
    scope.cancel()


def _first_of(faults: BaseExceptionGroup[BrowserShellError]) -> BrowserShellError:
    first = faults.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first
