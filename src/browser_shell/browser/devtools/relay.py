"""Forward the driver's DevTools connections, from a loopback port outside the jail to Chromium inside it."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import structlog
from anyio import to_thread

from browser_shell.browser.devtools.relay_repair import RelayRepair
from browser_shell.core.errors import BrowserUnavailable, ConfigurationInvalid

log = structlog.get_logger()

_CHUNK_BYTES = 64 * 1024
_RETRY_SECONDS = 0.05
_MAX_CONNECTIONS = 64
"""One daemon for each session, and the CLIs that start daemons."""
_CONNECTIONS_TABLE = Path("/proc/net/tcp")
_ESTABLISHED = "01"
_NO_INODE = "0"


def listen_for_driver(port: int) -> socket.socket:
    """Listen on a loopback port. Raises: ConfigurationInvalid when the port is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as cause:
        listener.close()
        raise ConfigurationInvalid(
            f"BROWSER_REMOTE_DEBUGGING_PORT: 127.0.0.1:{port} is taken ({cause.strerror}); free it, or set another port"
        ) from cause
    listener.setblocking(False)
    return listener


async def relay(
    listener: socket.socket, connect: Callable[[], Awaitable[socket.socket]], *, allowed_uids: frozenset[int]
) -> None:
    """Join every connection of an allowed account to a new connection from `connect`, until cancelled.

    DevTools gives full control of the browser, and programs of other accounts can reach loopback too.
    """
    threads = anyio.CapacityLimiter(2 * _MAX_CONNECTIONS)
    open_connections = 0
    our_port = int(listener.getsockname()[1])

    async def handle(client: socket.socket, peer_port: int) -> None:
        nonlocal open_connections
        open_connections += 1
        try:
            with client:
                if open_connections > _MAX_CONNECTIONS:
                    log.warning("devtools_connections_full", most=_MAX_CONNECTIONS)
                else:
                    await serve(client, peer_port)
        except* (OSError, RuntimeError) as faults:
            # No file descriptor or thread is left. Only this connection ends.
            log.warning("devtools_connection_failed", reason=str(faults.exceptions[0]))
        finally:
            open_connections -= 1

    async def serve(client: socket.socket, peer_port: int) -> None:
        owner = _owner_uid(peer_port, our_port)
        if owner is None:
            return  # The peer has closed the connection.
        if owner not in allowed_uids:
            log.warning("devtools_peer_uid_refused", uid=owner)
            return
        try:
            browser = await connect()
        except BrowserUnavailable:
            return
        with browser:
            await _forward(driver=client, browser=browser, threads=threads)

    async with anyio.create_task_group() as connections:
        while True:
            await anyio.wait_readable(listener)
            try:
                client, address = listener.accept()
            except OSError:
                await anyio.sleep(_RETRY_SECONDS)  # The peer is gone, or no file descriptor is left.
                continue
            connections.start_soon(handle, client, int(address[1]))


def own_uids(account_uid: int | None) -> frozenset[int]:
    """The uids of this server and of the account that its children run as."""
    return frozenset({os.geteuid()} | ({account_uid} if account_uid is not None else set()))


def _owner_uid(peer_port: int, our_port: int) -> int | None:
    """Look up in the kernel's table which account owns the socket 127.0.0.1:peer_port that is connected to us.

    None for a socket that its process has closed: older kernels list such a socket as root's.
    """
    wanted = (f"0100007F:{peer_port:04X}", f"0100007F:{our_port:04X}", _ESTABLISHED)
    with _CONNECTIONS_TABLE.open(encoding="ascii") as table:
        next(table)
        for line in table:
            columns = line.split()
            if (columns[1], columns[2], columns[3]) == wanted and columns[9] != _NO_INODE:
                return int(columns[7])
    return None


async def _forward(*, driver: socket.socket, browser: socket.socket, threads: anyio.CapacityLimiter) -> None:
    """Copy both ways until either side closes.

    Uses blocking threads: one command is a dozen requests and replies in a row, and a pass through the event loop
    would be added to each of them.
    """
    for end in (driver, browser):
        end.setblocking(True)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = RelayConnection(driver, browser)

    async def run(direction: Callable[[], None]) -> None:
        await to_thread.run_sync(direction, limiter=threads)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, connection.forward_requests)
        tasks.start_soon(run, connection.forward_replies)
        try:
            await anyio.sleep_forever()
        finally:
            connection.shut_down()  # Ends both threads, also when this task is cancelled.


class RelayConnection:
    """One connection of the driver and the matching one to the browser. The two `forward_` methods run in threads."""

    def __init__(self, driver: socket.socket, browser: socket.socket) -> None:
        self._driver = driver
        self._browser = browser
        self._repair = RelayRepair()

    def forward_requests(self) -> None:
        """Copy from the driver to the browser until either side closes."""
        try:
            for data in _received(self._driver):
                self._repair.note_requests(data)
                self._browser.sendall(data)
        except OSError:
            pass  # A broken connection is treated as closed.
        finally:
            self.shut_down()

    def forward_replies(self) -> None:
        """Copy from the browser to the driver until either side closes."""
        try:
            for data in _received(self._browser):
                for part in self._repair.complete_replies(data):
                    self._driver.sendall(part)
        except OSError:
            pass
        finally:
            self.shut_down()

    def shut_down(self) -> None:
        for end in (self._driver, self._browser):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _received(source: socket.socket) -> Iterator[memoryview]:
    """Yield received data. Each chunk is overwritten by the next one."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    while count := source.recv_into(buffer):
        yield buffer[:count]
