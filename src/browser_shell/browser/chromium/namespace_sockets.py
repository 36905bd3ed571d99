"""Sockets of a network namespace in which no process of ours stays.

A socket belongs to the namespace that it was made in, and so does every connection that a listener accepts. So out of
two sockets that were made inside, a listener and a caller, any number can be made outside: the caller calls, and what
the listener accepts is dissolved (connect(2) to no address) into a socket that is as good as new, still of the inside.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
import struct

import anyio

_NOWHERE = struct.pack("=H14x", socket.AF_UNSPEC)
_MOST_STRANGERS = 64
"""More calls than the listener keeps waiting."""

_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceSockets:
    """Makes connections to ports inside, out of two sockets that do not block."""

    def __init__(self, *, listener: socket.socket, caller: socket.socket) -> None:
        self._listener = listener
        self._caller = caller
        self._turn = anyio.Lock()
        self._call: anyio.CancelScope | None = None
        self._ended = False

    async def end(self) -> None:
        """Breaks off a call that is under way. Only then may the two be closed: the event loop still watches them."""
        self._ended = True
        if self._call is not None:
            self._call.cancel()
        with anyio.CancelScope(shield=True):
            async with self._turn:
                pass

    async def connect(self, port: int) -> socket.socket:
        """A connection to this port of 127.0.0.1. Raises: OSError."""
        made = await self._make()
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
        except BaseException:
            made.close()
            raise
        return made

    async def _make(self) -> socket.socket:
        async with self._turn:
            if not self._ended:
                with anyio.CancelScope() as self._call:
                    return await self._call_and_accept()
        raise ConnectionAbortedError(errno.ECONNABORTED, os.strerror(errno.ECONNABORTED))

    async def _call_and_accept(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        self._send_away_strangers()
        _dissolve(self._caller)  # From its last call, or from half of one that was broken off.
        await loop.sock_connect(self._caller, self._listener.getsockname())
        # Perhaps a stranger's, who called in between. It does not matter: whatever it was, it is dissolved.
        made, _ = await loop.sock_accept(self._listener)
        _dissolve(made)
        return made

    def _send_away_strangers(self) -> None:
        """Whoever is inside can call too. They may not keep our own call waiting."""
        for _ in range(_MOST_STRANGERS):
            try:
                self._listener.accept()[0].close()
            except BlockingIOError:
                return


def _dissolve(connection: socket.socket) -> None:
    """Takes a TCP socket back to where it began: no peer, no port. Python's own connect knows no such address."""
    if _libc.connect(connection.fileno(), _NOWHERE, len(_NOWHERE)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
