"""Gives the driver, which runs outside the jail, the DevTools port that lies inside it."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from browser_shell.core.errors import BrowserUnavailable, ConfigurationInvalid

log = structlog.get_logger()

_CHUNK_BYTES = 256 * 1024
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
    listener: SocketListener, connect: Callable[[], Awaitable[socket.socket]], *, allowed_uids: frozenset[int]
) -> None:
    """Joins every connection of an allowed account to one of `connect`'s, until cancelled.

    DevTools can do anything, and other people's programs on this machine can reach loopback too.
    """

    async def handle(client: SocketStream) -> None:
        async with client:
            peer_port = int(client.extra(SocketAttribute.remote_port))  # noqa: S610  no Django here
            our_port = int(client.extra(SocketAttribute.local_port))  # noqa: S610
            owner = _owner_of(peer_port, our_port)
            if owner is None:
                return  # It has left already.
            if owner not in allowed_uids:
                log.warning("devtools_stranger_refused", uid=owner)
                return
            try:
                inner = await SocketStream.from_socket(await connect())
            except BrowserUnavailable:
                return
            async with inner:
                await _join(client, inner)

    await listener.serve(handle)


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


async def _join(one: SocketStream, other: SocketStream) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_copy, one, other, tasks.cancel_scope)
        tasks.start_soon(_copy, other, one, tasks.cancel_scope)


async def _copy(source: SocketStream, sink: SocketStream, both: anyio.CancelScope) -> None:
    """DevTools connections end as a whole: there is nothing to say once one side has gone."""
    try:
        while True:
            await sink.send(await source.receive(_CHUNK_BYTES))
    except (OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        both.cancel()


def own_uids(account_uid: int | None) -> frozenset[int]:
    """This server and the account that its children run as."""
    return frozenset({os.geteuid()} | ({account_uid} if account_uid is not None else set()))
