"""Gives the driver, which runs outside the jail, the DevTools port that lies inside it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import structlog
from anyio import to_thread

from browser_shell.browser.devtools.relay_repair import RelayRepair, UnderWay
from browser_shell.core.errors import BrowserUnavailable, ConfigurationInvalid

log = structlog.get_logger()

_CHUNK_BYTES = 64 * 1024
_RETRY_SECONDS = 0.05
_MOMENT_SECONDS = 0.05
"""For a driver that asks before the answer that it has just got was put down as handed on."""
_MAX_CONNECTIONS = 64
"""One daemon for each session, and the command lines that look for the browser."""
_CONNECTIONS_TABLE = Path("/proc/net/tcp")
_ESTABLISHED = "01"
_NO_INODE = "0"


def listen_for_driver(port: int) -> socket.socket:
    """Raises: ConfigurationInvalid when the port is taken."""
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
    listener: socket.socket,
    connect: Callable[[], Awaitable[socket.socket]],
    *,
    allowed_uids: frozenset[int],
    under_way: UnderWay,
) -> None:
    """Joins every connection of an allowed account to one of `connect`'s, until cancelled.

    DevTools can do anything, and other people's programs on this machine can reach loopback too.
    """
    threads = anyio.CapacityLimiter(2 * _MAX_CONNECTIONS)
    open_now = 0
    our_port = int(listener.getsockname()[1])

    async def handle(client: socket.socket, peer_port: int) -> None:
        nonlocal open_now
        open_now += 1
        try:
            with client:
                if open_now > _MAX_CONNECTIONS:
                    log.warning("devtools_connections_full", most=_MAX_CONNECTIONS)
                else:
                    await serve(client, peer_port)
        except* (OSError, RuntimeError) as faults:
            # No file or no thread is left for it. One connection ends, and neither the others nor the browser.
            log.warning("devtools_connection_failed", reason=str(faults.exceptions[0]))
        finally:
            open_now -= 1

    async def serve(client: socket.socket, peer_port: int) -> None:
        owner = _owner_of(peer_port, our_port)
        if owner is None:
            return  # It has left already.
        if owner not in allowed_uids:
            log.warning("devtools_peer_uid_refused", uid=owner)
            return
        try:
            inner = await connect()
        except BrowserUnavailable:
            return
        with inner:
            passage = _RelayConnection(client, inner, RelayRepair(under_way=under_way))
            await _join(driver=client, browser=inner, passage=passage, threads=threads)

    async with anyio.create_task_group() as connections:
        while True:
            await anyio.wait_readable(listener)
            try:
                client, address = listener.accept()
            except OSError:
                await anyio.sleep(_RETRY_SECONDS)  # It has left already, or there are no files left.
                continue
            connections.start_soon(handle, client, int(address[1]))


def _owner_of(peer_port: int, our_port: int) -> int | None:
    """The account whose socket is connected from 127.0.0.1:peer_port to us, from the kernel's own table.

    None for a socket that its owner has let go of: older kernels then say that it is root's.
    """
    wanted = (f"0100007F:{peer_port:04X}", f"0100007F:{our_port:04X}", _ESTABLISHED)
    with _CONNECTIONS_TABLE.open(encoding="ascii") as table:
        next(table)
        for line in table:
            fields = line.split()
            if (fields[1], fields[2], fields[3]) == wanted and fields[9] != _NO_INODE:
                return int(fields[7])
    return None


async def _join(
    *, driver: socket.socket, browser: socket.socket, passage: _RelayConnection, threads: anyio.CapacityLimiter
) -> None:
    """Copies both ways until either side has gone: DevTools connections end as a whole.

    By threads that wait inside the kernel: a command of the driver is a dozen questions and answers in a row, and each
    turn of the event loop would be added to every one of them.
    """
    for end in (driver, browser):
        end.setblocking(True)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def copy(what: Callable[[], None]) -> None:
        try:
            what()
        except OSError:
            pass  # Broken is ended.
        finally:
            _shut(driver, browser)

    async def run(what: Callable[[], None]) -> None:
        await to_thread.run_sync(copy, what, limiter=threads)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, passage.ask)
        tasks.start_soon(run, passage.answer)
        try:
            await anyio.sleep_forever()
        finally:
            _shut(driver, browser)  # Wakes both threads, also when this task is cancelled.


class _RelayConnection:
    """Between one connection of the driver and one of the browser. Each direction has a thread of its own."""

    def __init__(self, driver: socket.socket, browser: socket.socket, answers: RelayRepair) -> None:
        self._driver = driver
        self._browser = browser
        self._answers = answers
        self._handing_on = threading.Lock()
        """Held while the driver is sent something."""

    def ask(self) -> None:
        for data in _received(self._driver):
            known = self._answers.take_questions(data)
            if known is None:
                self._browser.sendall(data)
            elif known.browser_has_seconds:
                self._browser.sendall(data)
                if not self._answers.came_in_time(known):
                    self._told(known.frame)
            elif not self._told(known.frame) or known.browser_is_asked:
                self._browser.sendall(data)

    def answer(self) -> None:
        for data in _received(self._browser):
            with self._handing_on:
                for part in self._answers.complete(data):
                    self._driver.sendall(part)

    def _told(self, answer: bytes) -> bool:
        """Whether the driver got this answer. In doubt it has to wait for the browser's."""
        if not self._handing_on.acquire(timeout=_MOMENT_SECONDS):
            return False
        try:
            if not self._answers.between_messages:
                return False
            self._driver.sendall(answer)
            return True
        finally:
            self._handing_on.release()


def _received(source: socket.socket) -> Iterator[memoryview]:
    """Each piece is overwritten by the next one."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    while count := source.recv_into(buffer):
        yield buffer[:count]


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def own_uids(account_uid: int | None) -> frozenset[int]:
    """This server and the account that its children run as."""
    return frozenset({os.geteuid()} | ({account_uid} if account_uid is not None else set()))
