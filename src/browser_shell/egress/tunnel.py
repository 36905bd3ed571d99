"""Joins two streams byte by byte."""

from __future__ import annotations

import anyio
from anyio.abc import SocketStream

_CHUNK_BYTES = 256 * 1024
_IDLE_SECONDS = 600.0
_TLS_HANDSHAKE = 0x16


def looks_like_tls(first: bytes) -> bool:
    """Whether the first bytes of a client begin a TLS handshake."""
    return first[:1] == bytes((_TLS_HANDSHAKE,))


async def join(one: SocketStream, other: SocketStream) -> None:
    """Copies both ways until both sides have ended, one has broken, or nothing has come for a long time."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_copy, one, other, tasks.cancel_scope)
        tasks.start_soon(_copy, other, one, tasks.cancel_scope)


async def _copy(source: SocketStream, sink: SocketStream, both: anyio.CancelScope) -> None:
    try:
        while True:
            with anyio.fail_after(_IDLE_SECONDS):
                part = await source.receive(_CHUNK_BYTES)
            await sink.send(part)
    except anyio.EndOfStream:
        try:
            await sink.send_eof()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            both.cancel()
    except (OSError, TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        both.cancel()
