"""Message bodies: decoding by length, by chunks or until the connection closes."""

from __future__ import annotations

import re
from enum import Enum, auto

from browser_shell.http1.heads import Framing, MessageInvalid

MAX_STRICT_CHUNKS = 16 * 1024
"""A body of one-byte chunks costs more to parse than it carries."""
_STRICT_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_LENIENT_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t -~\x80-\xff]*)?\r\n")
_MAX_STRICT_LINE_BYTES = len(b"ffffffff\r\n")
_MAX_LENIENT_LINE_BYTES = 4096
_END_OF_LINE = b"\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class _Expected(Enum):
    """The next element of a chunked body (RFC 9112 §7.1)."""

    CHUNK_SIZE = auto()
    CHUNK_DATA = auto()
    CHUNK_END = auto()
    TRAILER = auto()


class BodyReader:
    """Decodes one body, in time linear in its size however it is split.

    Chunk extensions and trailers are refused. With `lenient` they are dropped (RFC 9112 §7.1.1, §7.1.2), and the
    number of chunks is not limited.
    """

    def __init__(self, framing: Framing, length: int | None = None, *, lenient: bool = False) -> None:
        self.complete = framing is Framing.NONE or (framing is Framing.LENGTH and not length)
        self.unused = b""
        """Bytes after the end of the body, from the last call of `feed`."""
        self._framing = framing
        self._remaining = length or 0
        """Bytes until the end of the body, or of the current chunk."""
        self._lenient = lenient
        self._expected = _Expected.CHUNK_SIZE
        self._line = bytearray()
        self._chunks = 0

    def feed(self, data: bytes) -> bytes:
        """Return the content in `data`, without its framing. Raises: MessageInvalid."""
        if self.complete:
            self.unused = data
            return b""
        match self._framing:
            case Framing.CHUNKED:
                return self._feed_chunked(data)
            case Framing.LENGTH:
                content, self.unused = data[: self._remaining], data[self._remaining :]
                self._remaining -= len(content)
                self.complete = self._remaining == 0
                return content
            case _:
                return data

    def end_of_input(self) -> None:
        """Handle the end of the connection. Raises: MessageInvalid when the body is incomplete."""
        if not self.complete and self._framing is not Framing.UNTIL_CLOSE:
            raise MessageInvalid("the connection ended before the body")
        self.complete = True

    def _feed_chunked(self, data: bytes) -> bytes:
        content: list[bytes] = []
        position = 0
        while position < len(data) and not self.complete:
            if self._expected is _Expected.CHUNK_DATA:
                part = data[position : position + self._remaining]
                content.append(part)
                position += len(part)
                self._remaining -= len(part)
                if not self._remaining:
                    self._expected = _Expected.CHUNK_END
            else:
                position = self._feed_line(data, position)
        self.unused = data[position:]
        return b"".join(content)

    def _feed_line(self, data: bytes, position: int) -> int:
        """Collect a line and handle it once it is complete. Returns the position after the bytes used."""
        room = self._max_line_bytes() - len(self._line)
        line_end = data.find(b"\n", position, position + room) + 1
        used_until = line_end or min(len(data), position + room)
        self._line += data[position:used_until]
        if line_end:
            line = bytes(self._line)
            self._line.clear()
            self._handle_line(line)
        elif len(self._line) == self._max_line_bytes():
            raise MessageInvalid("malformed chunk")
        return used_until

    def _max_line_bytes(self) -> int:
        if self._expected is _Expected.CHUNK_END or (self._expected is _Expected.TRAILER and not self._lenient):
            return len(_END_OF_LINE)
        return _MAX_LENIENT_LINE_BYTES if self._lenient else _MAX_STRICT_LINE_BYTES

    def _handle_line(self, line: bytes) -> None:
        match self._expected:
            case _Expected.CHUNK_SIZE:
                self._start_chunk(line)
            case _Expected.CHUNK_END if line == _END_OF_LINE:
                self._expected = _Expected.CHUNK_SIZE
            case _Expected.TRAILER if line == _END_OF_LINE:
                self.complete = True
            case _Expected.TRAILER if self._lenient and line.endswith(_END_OF_LINE):
                pass
            case _:
                raise MessageInvalid("malformed chunk")

    def _start_chunk(self, line: bytes) -> None:
        size = (_LENIENT_SIZE_LINE if self._lenient else _STRICT_SIZE_LINE).fullmatch(line)
        if size is None:
            raise MessageInvalid("malformed chunk size")
        self._chunks += 1
        if self._chunks > MAX_STRICT_CHUNKS and not self._lenient:
            raise MessageInvalid("too many chunks", status=413)
        self._remaining = int(size[1], 16)
        self._expected = _Expected.CHUNK_DATA if self._remaining else _Expected.TRAILER


def encode_chunk(content: bytes) -> bytes:
    """Frame content as one chunk. Empty content makes no chunk, because an empty chunk ends the body."""
    return b"%x\r\n%s\r\n" % (len(content), content) if content else b""
