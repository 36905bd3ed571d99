"""Keeps the display and the browser running, and provides the current DevTools connection."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import structlog
from anyio.abc import SocketListener, SocketStream, TaskGroup, TaskStatus

from browser_shell.browser.chromium.critical_processes import wait_for_critical_process_exit
from browser_shell.browser.chromium.display import RunningDisplay, keep_window_manager, running_display
from browser_shell.browser.chromium.jail import PROXY_PORT, JailSettings, running_jail
from browser_shell.browser.chromium.process import (
    ChromiumSettings,
    Connect,
    chromium_argv,
    chromium_env,
    connect_directly,
    devtools_url,
    has_process,
    unjailed_chromium,
)
from browser_shell.browser.chromium.runtime_dirs import forbid_new_temporary_files, make_fresh_directories
from browser_shell.browser.devtools.client import DevTools, DevToolsError, DevToolsEvent, connect_devtools
from browser_shell.browser.devtools.relay import own_uids, relay
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.errors import BrowserUnavailable, JailUnavailable, SandboxUnavailable, first_error

log = structlog.get_logger()

_OpenConnection = Callable[[Callable[[DevToolsEvent], None], int], Awaitable[DevTools]]
ServeEgress = Callable[[SocketListener], Coroutine[None, None, None]]

_MIN_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 5.0
_HEALTHY_SECONDS = 10.0
"""A longer run resets the pause before the next start."""
_PROBE_SECONDS = 2.0
_END_SECONDS = 0.5
"""The supervisor can notice the end of a browser later than a caller whose DevTools command fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserConnection:
    """A connection to a running browser. Browser contexts belong to one generation of the browser."""

    devtools: DevTools
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNetwork:
    """Network of a browser without a jail, which needs an explicit unsafe setting."""

    proxy_listener: socket.socket
    attach_port: int | None
    """The DevTools port of a browser that the operator runs; None to start a browser."""


class BrowserSupervisor:
    """Starts the browser, and starts it again whenever it ends."""

    def __init__(
        self,
        *,
        chromium: ChromiumSettings,
        jail: JailSettings,
        driver_listener: socket.socket | None,
        serve_egress: ServeEgress,
        tabs: TabTracker,
        unsafe_network: OpenNetwork | None,
    ) -> None:
        self._chromium = chromium
        self._jail = jail
        self._driver_listener = driver_listener
        self._serve_egress = serve_egress
        self._tabs = tabs
        self._unsafe = unsafe_network
        self._current: BrowserConnection | None = None
        self._changed = anyio.Event()
        self._generation = 0
        self._last_error = "the browser has not started yet"
        self._connect_to_proxy: Connect | None = None
        self._open_connection: _OpenConnection | None = None

    async def probe_egress(self) -> None:
        """Connect to the egress proxy from inside the jail, at the address of no session, and expect a refusal.

        Raises: BrowserUnavailable when there is no browser, or when the proxy does not answer or does not refuse.
        """
        await self.connection(seconds=_PROBE_SECONDS)
        if self._connect_to_proxy is None:
            return  # Without a jail the proxy is an ordinary listener of this process.
        try:
            with anyio.fail_after(_PROBE_SECONDS):
                async with await SocketStream.from_socket(await self._connect_to_proxy()) as stream:
                    await stream.send(b"GET http://health.invalid/ HTTP/1.1\r\nHost: health.invalid\r\n\r\n")
                    response = await stream.receive()
        except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError) as cause:
            raise BrowserUnavailable("the egress proxy does not answer") from cause
        if not response.startswith(b"HTTP/1.1 403"):
            raise BrowserUnavailable("the egress proxy did not refuse a request without a session")

    async def connection(self, *, seconds: float = 5.0) -> BrowserConnection:
        """Return the current connection; wait while the browser starts. Raises: BrowserUnavailable."""
        if self._current is None:
            with anyio.move_on_after(seconds):
                while self._current is None:
                    await self._changed.wait()
        if self._current is None:
            raise BrowserUnavailable(self._last_error)
        return self._current

    def is_current(self, generation: int) -> bool:
        return self._current is not None and self._current.generation == generation

    async def open_connection(self, on_event: Callable[[DevToolsEvent], None], *, max_message_bytes: int) -> DevTools:
        """Open another connection to the current browser. It ends with `close`, or with the browser.

        Raises: BrowserUnavailable.
        """
        await self.connection()
        if self._open_connection is None:
            raise BrowserUnavailable(self._last_error)
        return await self._open_connection(on_event, max_message_bytes)

    async def wait_for_end(self, generation: int) -> bool:
        """Wait up to 0.5 s for the end of this browser. Return whether it has ended."""
        with anyio.move_on_after(_END_SECONDS):
            while self.is_current(generation):
                await self._changed.wait()
        return not self.is_current(generation)

    async def run(self) -> None:
        """Run display and browser until cancelled.

        Raises: JailUnavailable when the first start fails because this machine allows no jail.
        """
        if self._unsafe is not None and self._unsafe.attach_port is not None:
            await self._repeat(partial(self._run_attached, self._unsafe, self._unsafe.attach_port))
        else:
            await self._repeat(self._run_display)

    async def _repeat(self, run_once: Callable[[], Awaitable[None]]) -> None:
        """Call `run_once` repeatedly. The pauses double while the calls are short."""
        pause = _MIN_PAUSE_SECONDS
        while True:
            started_at = anyio.current_time()
            no_jail: JailUnavailable | None = None
            try:
                await run_once()
                self._last_error = "the browser ended and is being restarted"
            except* (SandboxUnavailable, DevToolsError) as group:
                error = first_error(group)
                self._last_error = error.public_message
                if isinstance(error, JailUnavailable) and self._generation == 0:
                    no_jail = error
            if no_jail is not None:
                raise no_jail  # Outside of `except*`, which would wrap it in a group.
            seconds = anyio.current_time() - started_at
            pause = _MIN_PAUSE_SECONDS if seconds > _HEALTHY_SECONDS else min(pause * 2, _MAX_PAUSE_SECONDS)
            log.warning("browser_ended", reason=self._last_error, uptime_seconds=round(seconds, 1))
            await anyio.sleep(pause)

    async def _run_display(self) -> None:
        layout, width, height = self._chromium.layout, self._chromium.width, self._chromium.height
        async with running_display(layout, width=width, height=height) as display, anyio.create_task_group() as tasks:
            tasks.start_soon(keep_window_manager, layout, display)
            run_browser = self._run_jailed if self._unsafe is None else partial(self._run_unjailed, self._unsafe)
            tasks.start_soon(self._repeat, partial(run_browser, display))
            await display.process.wait()
            tasks.cancel_scope.cancel()

    async def _run_jailed(self, display: RunningDisplay) -> None:
        make_fresh_directories(self._chromium.layout)
        env = chromium_env(self._chromium, display.env)
        async with (
            running_jail(self._jail, chromium_argv(self._chromium), env) as jail,
            anyio.create_task_group() as tasks,
        ):
            connect = partial(jail.connect, self._chromium.port)
            tasks.start_soon(self._serve_egress, await SocketListener.from_socket(jail.proxy_listener.dup()))
            if self._driver_listener is not None:
                account = self._chromium.layout.account
                uids = own_uids(account.uid if account else None)
                serve_driver = partial(relay, self._driver_listener, connect, allowed_uids=uids)
                tasks.start_soon(serve_driver)
            url = await devtools_url(self._chromium.port, connect, process=jail.process)
            forbid_new_temporary_files(self._chromium.layout)
            self._connect_to_proxy = partial(jail.connect, PROXY_PORT)
            async with self._connected(url, connect, None) as devtools:
                tasks.start_soon(_cancel_after_disconnect, devtools, tasks.cancel_scope)
                tasks.start_soon(_cancel_after_critical_exit, jail.process.pid, tasks.cancel_scope)
                await jail.process.wait()
                tasks.cancel_scope.cancel()

    async def _run_unjailed(self, network: OpenNetwork, display: RunningDisplay) -> None:
        make_fresh_directories(self._chromium.layout)
        connect = partial(connect_directly, self._chromium.port)
        async with (
            unjailed_chromium(self._chromium, display.env) as process,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._serve_egress, await SocketListener.from_socket(network.proxy_listener.dup()))
            url = await devtools_url(self._chromium.port, connect, process=process)
            forbid_new_temporary_files(self._chromium.layout)
            async with self._connected(url, connect, process.pid) as devtools:
                tasks.start_soon(_cancel_after_disconnect, devtools, tasks.cancel_scope)
                await process.wait()
                tasks.cancel_scope.cancel()

    async def _run_attached(self, network: OpenNetwork, port: int) -> None:
        connect = partial(connect_directly, port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._serve_egress, await SocketListener.from_socket(network.proxy_listener.dup()))
            async with self._connected(await devtools_url(port, connect), connect, None) as devtools:
                await devtools.closed.wait()
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _connected(self, url: str, connect: Connect, pid: int | None) -> AsyncIterator[DevTools]:
        current: DevTools | None = None

        def on_event(event: DevToolsEvent) -> None:
            if current is not None:
                self._tabs.handle(current, event)

        async with (
            connect_devtools(url, on_event, through=await connect()) as devtools,
            anyio.create_task_group() as connections,
        ):
            current = devtools
            if pid is not None and not await has_process(devtools, pid):
                raise BrowserUnavailable(
                    f"127.0.0.1:{self._chromium.port} belongs to another browser; free it, or set "
                    "BROWSER_REMOTE_DEBUGGING_PORT"
                )
            await self._tabs.subscribe(devtools)
            self._open_connection = partial(_open_in, connections, url, connect)
            self._generation += 1
            self._set_connection(BrowserConnection(devtools=devtools, generation=self._generation))
            log.info("browser_ready", generation=self._generation)
            try:
                yield devtools
            finally:
                self._set_connection(None)
                self._open_connection = None
                connections.cancel_scope.cancel()
                current = None  # Events that arrive while the connection is closed are ignored.
                self._tabs.forget_everything()

    def _set_connection(self, connection: BrowserConnection | None) -> None:
        self._current = connection
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def _open_in(
    connections: TaskGroup,
    url: str,
    connect: Connect,
    on_event: Callable[[DevToolsEvent], None],
    max_message_bytes: int,
) -> DevTools:
    """Open a connection that is read by a task of the group."""

    async def read(*, task_status: TaskStatus[DevTools]) -> None:
        through = await connect()
        async with connect_devtools(url, on_event, through=through, max_message_bytes=max_message_bytes) as devtools:
            task_status.started(devtools)
            await devtools.closed.wait()

    devtools: DevTools = await connections.start(read)
    return devtools


async def _cancel_after_critical_exit(browser_pid: int, scope: anyio.CancelScope) -> None:
    log.warning("browser_critical_process_died", process=await wait_for_critical_process_exit(browser_pid))
    scope.cancel()


async def _cancel_after_disconnect(devtools: DevTools, scope: anyio.CancelScope) -> None:
    await devtools.closed.wait()
    scope.cancel()
