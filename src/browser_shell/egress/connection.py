"""Sockets of the egress proxy: HTTP messages on one connection, and tunnels between two."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from anyio.abc import SocketStream

from browser_shell.http1.body import LAST_CHUNK, BodyReader, encode_chunk
from browser_shell.http1.heads import Framing, HeadReader, MessageInvalid

CONNECTION_ERRORS = (
    MessageInvalid,
    OSError,
    TimeoutError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)
"""Errors after which a connection cannot be used any further."""
_RECEIVE_BYTES = 256 * 1024
_STALL_SECONDS = 300.0
_TUNNEL_IDLE_SECONDS = 600.0
_HALF_CLOSED_SECONDS = 30.0
"""Time for the second direction of a tunnel to end after the first."""


class HttpConnection:
    """A socket, and the bytes received from it that are not used yet."""

    def __init__(self, stream: SocketStream, head_reader: HeadReader) -> None:
        self.stream = stream
        self.buffer = bytearray()
        self._head_reader = head_reader

    async def send(self, data: bytes) -> None:
        """Raises: TimeoutError when the peer stops reading."""
        with anyio.fail_after(_STALL_SECONDS):
            await self.stream.send(data)

    async def fill_buffer(self) -> None:
        """Receive more bytes. Raises: anyio.EndOfStream."""
        self.buffer += await self.stream.receive(_RECEIVE_BYTES)

    def take_buffer(self) -> bytes:
        data = bytes(self.buffer)
        self.buffer.clear()
        return data

    async def read_head(self) -> bytes:
        """Return the next head without its empty line. Raises: MessageInvalid, anyio.EndOfStream."""
        while True:
            if not self.buffer:
                await self.fill_buffer()
            complete = self._head_reader.feed(self.take_buffer())
            if complete is not None:
                head, rest = complete
                self.buffer += rest
                return head

    async def read_body(self, framing: Framing, length: int | None) -> AsyncIterator[bytes]:
        """Yield the content of a body as it arrives. Raises: MessageInvalid when it is malformed or incomplete."""
        # Origins use chunk extensions and trailers. Both are dropped.
        reader = BodyReader(framing, length, lenient=True)
        while not reader.complete:
            if not self.buffer:
                try:
                    await self.fill_buffer()
                except anyio.EndOfStream:
                    reader.end_of_input()
                    return
            content = reader.feed(self.take_buffer())
            self.buffer += reader.unused
            if content:
                yield content


async def copy_body(source: HttpConnection, framing: Framing, length: int | None, sink: HttpConnection) -> None:
    """Copy a body. One without a length is sent in chunks.

    Raises: one of CONNECTION_ERRORS. The last chunk is missing then, so that the body does not look complete.
    """
    has_length = framing in (Framing.NONE, Framing.LENGTH)
    with anyio.fail_after(_STALL_SECONDS) as timeout:
        async for content in source.read_body(framing, length):
            await sink.stream.send(content if has_length else encode_chunk(content))
            timeout.deadline = anyio.current_time() + _STALL_SECONDS
        if not has_length:
            await sink.stream.send(LAST_CHUNK)


async def join_streams(
    client: SocketStream,
    server: SocketStream,
    *,
    idle_seconds: float = _TUNNEL_IDLE_SECONDS,
    half_closed_seconds: float = _HALF_CLOSED_SECONDS,
) -> None:
    """Copy bytes in both directions until both have ended, one fails, or a direction is idle for too long."""
    async with anyio.create_task_group() as tasks:

        async def copy(source: SocketStream, sink: SocketStream) -> None:
            try:
                await _copy_stream(source, sink, idle_seconds)
                tasks.cancel_scope.deadline = anyio.current_time() + half_closed_seconds
            except (OSError, TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                tasks.cancel_scope.cancel()

        tasks.start_soon(copy, client, server)
        tasks.start_soon(copy, server, client)


async def _copy_stream(source: SocketStream, sink: SocketStream, idle_seconds: float) -> None:
    try:
        while True:
            with anyio.fail_after(idle_seconds):
                data = await source.receive(_RECEIVE_BYTES)
            with anyio.fail_after(idle_seconds):
                await sink.send(data)
    except anyio.EndOfStream:
        await sink.send_eof()
