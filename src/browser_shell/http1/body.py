"""One connection that speaks HTTP/1.1: heads are read whole, bodies flow through without being kept."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from anyio.abc import SocketStream

from browser_shell.http1.heads import Framing, MessageInvalid, chunk_size

CONNECTION_OVER = (
    MessageInvalid,
    OSError,
    TimeoutError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)
"""The peer went away, spoke nonsense or fell asleep; either way its connection is of no more use."""

_CHUNK_BYTES = 256 * 1024
_LONGEST_LINE_BYTES = 4096
_STALLED_SECONDS = 300.0
_REFRESH_SECONDS = 10.0


class Wire:
    """A stream with what has been read of it and not been used yet."""

    def __init__(self, stream: SocketStream, *, max_head_bytes: int) -> None:
        self.stream = stream
        self.ahead = b""
        self._max_head_bytes = max_head_bytes

    async def send(self, data: bytes) -> None:
        """Raises: TimeoutError when the peer takes nothing for a long time."""
        with anyio.fail_after(_STALLED_SECONDS):
            await self.stream.send(data)

    async def read_more(self) -> None:
        """Adds to `ahead`. Raises: anyio.EndOfStream."""
        part = await self.stream.receive(_CHUNK_BYTES)
        self.ahead = self.ahead + part if self.ahead else part

    async def head(self) -> bytes:
        """The next message up to its empty line. Raises: MessageInvalid, anyio.EndOfStream when there is none."""
        searched = 0
        while True:
            end, after = _empty_line(self.ahead, searched)
            if after:
                head, self.ahead = self.ahead[:end], self.ahead[after:]
                return head
            if len(self.ahead) > self._max_head_bytes:
                raise MessageInvalid("the head is too long", status=431)
            if self.ahead and self.ahead[0] <= 0x20:
                raise MessageInvalid("this is not HTTP")
            searched = max(0, len(self.ahead) - 3)
            await self.read_more()

    async def body(self, framing: Framing, length: int) -> AsyncIterator[bytes]:
        """The parts of a body as they come, without their framing. Raises: MessageInvalid when it breaks off."""
        if framing is Framing.LENGTH:
            async for part in self._exactly(length):
                yield part
        elif framing is Framing.CHUNKED:
            while size := chunk_size(await self._line()):
                async for part in self._exactly(size):
                    yield part
                if await self._line():
                    raise MessageInvalid("a chunk that does not end")
            while await self._line():
                pass  # Trailers: nobody here reads them.
        elif framing is Framing.CLOSE:
            while self.ahead or not await self._at_end():
                part, self.ahead = self.ahead, b""
                yield part

    async def _exactly(self, length: int) -> AsyncIterator[bytes]:
        while length:
            if not self.ahead:
                await self.read_more()
            part, self.ahead = self.ahead[:length], self.ahead[length:]
            length -= len(part)
            yield part

    async def _line(self) -> bytes:
        while b"\r\n" not in self.ahead:
            if len(self.ahead) > _LONGEST_LINE_BYTES:
                raise MessageInvalid("a chunk line is too long")
            await self.read_more()
        line, _, self.ahead = self.ahead.partition(b"\r\n")
        return line

    async def _at_end(self) -> bool:
        try:
            await self.read_more()
        except anyio.EndOfStream:
            return True
        return False


async def pour(source: Wire, framing: Framing, length: int, sink: Wire) -> None:
    """Copies a body. What has no length is chunked anew. Raises: one of CONNECTION_OVER, and then no end is written."""
    chunked = framing in (Framing.CHUNKED, Framing.CLOSE)
    with anyio.CancelScope() as scope:
        renewed = anyio.current_time()
        scope.deadline = renewed + _STALLED_SECONDS
        async for part in source.body(framing, length):
            await sink.stream.send(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
            now = anyio.current_time()
            if now - renewed > _REFRESH_SECONDS:
                renewed, scope.deadline = now, now + _STALLED_SECONDS
        if chunked:
            await sink.stream.send(b"0\r\n\r\n")
        return
    raise TimeoutError("nothing has moved for a long time")


def _empty_line(data: bytes, start: int) -> tuple[int, int]:
    """Where the head ends and where the rest begins; (0, 0) when it has not ended."""
    ends = [(at, at + len(mark)) for mark in (b"\r\n\r\n", b"\n\n") if (at := data.find(mark, start)) >= 0]
    return min(ends, default=(0, 0))
