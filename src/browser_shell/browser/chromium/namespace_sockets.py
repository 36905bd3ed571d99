"""Connections to ports in a network namespace in which the server has no process.

A socket stays in the network namespace it was created in. A connection that a listener accepts belongs to the
listener's namespace. The jail's child creates a listener and a client socket inside the jail and passes both to the
server. To open a connection, the server

1. connects the client socket to the listener and accepts,
2. resets the accepted socket with connect(AF_UNSPEC), after which it has neither a peer nor a port,
3. connects the accepted socket to the port inside.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
import struct

import anyio

_UNSPECIFIED_ADDRESS = struct.pack("=H14x", socket.AF_UNSPEC)
_MAX_FOREIGN_CONNECTIONS = 64
"""More than the backlog of the listener."""

_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceSockets:
    """Opens connections inside a network namespace, by means of two non-blocking sockets of that namespace."""

    def __init__(self, *, listener: socket.socket, client: socket.socket) -> None:
        self._listener = listener
        self._client = client
        self._lock = anyio.Lock()
        self._attempt: anyio.CancelScope | None = None
        self._closed = False

    async def aclose(self) -> None:
        """Cancel the attempt in progress and refuse further ones.

        Must be called before the two sockets are closed, because the event loop watches them during an attempt.
        """
        self._closed = True
        if self._attempt is not None:
            self._attempt.cancel()
        with anyio.CancelScope(shield=True):
            async with self._lock:
                pass

    async def connect(self, port: int) -> socket.socket:
        """Connect to a port of 127.0.0.1 inside the namespace. Raises: OSError."""
        connection = await self._create_socket()
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        except BaseException:
            connection.close()
            raise
        return connection

    async def _create_socket(self) -> socket.socket:
        """Create an unconnected socket of the namespace, one attempt at a time."""
        async with self._lock:
            if not self._closed:
                with anyio.CancelScope() as self._attempt:
                    return await self._connect_and_accept()
        raise ConnectionAbortedError(errno.ECONNABORTED, os.strerror(errno.ECONNABORTED))

    async def _connect_and_accept(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        self._close_foreign_connections()
        _disconnect(self._client)  # Ends the connection of the previous attempt.
        await loop.sock_connect(self._client, self._listener.getsockname())
        # A foreign connection may be accepted here instead. It serves as well, because it is reset.
        accepted, _ = await loop.sock_accept(self._listener)
        _disconnect(accepted)
        return accepted

    def _close_foreign_connections(self) -> None:
        """Make room in the listener's backlog. Programs inside the jail can connect to the listener too."""
        for _ in range(_MAX_FOREIGN_CONNECTIONS):
            try:
                self._listener.accept()[0].close()
            except BlockingIOError:
                return


def _disconnect(connection: socket.socket) -> None:
    """Reset a TCP socket to the unconnected state. Python's `connect` does not accept AF_UNSPEC. Raises: OSError."""
    if _libc.connect(connection.fileno(), _UNSPECIFIED_ADDRESS, len(_UNSPECIFIED_ADDRESS)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
