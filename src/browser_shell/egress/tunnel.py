"""Joins two streams byte by byte."""

from __future__ import annotations

import anyio
from anyio.abc import SocketStream

_CHUNK_BYTES = 256 * 1024
_IDLE_SECONDS = 600.0
_ENDING_SECONDS = 30.0
"""What the other side gets to finish once one has ended: one that never ends would keep its place for nothing."""
_TLS_HANDSHAKE = 0x16


def looks_like_tls(first: bytes) -> bool:
    """Whether the first bytes of a client begin a TLS handshake."""
    return first[:1] == bytes((_TLS_HANDSHAKE,))


async def join(
    one: SocketStream,
    other: SocketStream,
    *,
    idle_seconds: float = _IDLE_SECONDS,
    ending_seconds: float = _ENDING_SECONDS,
) -> None:
    """Copies both ways until both sides have ended, one has broken, or nothing has come for a long time."""
    async with anyio.create_task_group() as tasks:

        async def copy(source: SocketStream, sink: SocketStream) -> None:
            try:
                await _copy(source, sink, idle_seconds)
                tasks.cancel_scope.deadline = anyio.current_time() + ending_seconds
            except (OSError, TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                tasks.cancel_scope.cancel()

        tasks.start_soon(copy, one, other)
        tasks.start_soon(copy, other, one)


async def _copy(source: SocketStream, sink: SocketStream, idle_seconds: float) -> None:
    try:
        while True:
            with anyio.fail_after(idle_seconds):
                part = await source.receive(_CHUNK_BYTES)
            with anyio.fail_after(idle_seconds):
                await sink.send(part)
    except anyio.EndOfStream:
        await sink.send_eof()
