"""The messages in a WebSocket connection that passes by: where they end, how they begin and end, and new ones."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEAD_BYTES = 192
_TAIL_BYTES = 64
_MAX_HANDSHAKE_BYTES = 64 * 1024
_FINAL_TEXT = 0x81
_MASKED = 0x80
_MASK_BYTES = 4
_SHORTEST_HEADER = 2
_SHORT_LENGTH = 0x7F
_LENGTH_IN_2_BYTES = 126
_LENGTH_BYTES = {_LENGTH_IN_2_BYTES: 2, 127: 8}
"""These lengths say that the real one follows, and in how many bytes."""


class Message(NamedTuple):
    """One whole message, of which only both ends were kept."""

    end: int
    """Where it ends in the bytes that were given last."""
    head: bytes
    tail: bytes


class MessageReader:
    """Finds the messages in one direction of a WebSocket connection, from its first byte on."""

    def __init__(self, *, begins_with: bytes) -> None:
        self._begins_with = begins_with
        self._handshake: bytearray | None = bytearray()
        self._blind = False
        self._header = bytearray()
        self._missing = _SHORTEST_HEADER
        self._mask = b""
        self._length = 0
        self._seen = 0
        self._head = bytearray()
        self._tail = bytearray()

    def read(self, data: memoryview) -> Iterator[Message]:
        """The messages that end within `data`. None at all in a connection that does not become a WebSocket."""
        if self.between_messages and (whole := whole_message(data)) is not None:
            yield whole
            return
        position = self._skip_handshake(data)
        while position < len(data):
            if self._missing:
                taken = data[position : position + self._missing]
                position += len(taken)
                self._take_header(taken)
                if self._missing:
                    continue
            else:
                taken = data[position : position + self._length - self._seen]
                self._take(taken)
                position += len(taken)
            if self._seen == self._length:
                if self._header[0] == _FINAL_TEXT:
                    yield Message(end=position, head=_unmasked(self._head, self._mask, 0), tail=self._end())
                self._header.clear()
                self._missing = _SHORTEST_HEADER

    @property
    def between_messages(self) -> bool:
        """Whether the handshake is over, and the last message whole."""
        return self._handshake is None and not self._blind and not self._header

    def _skip_handshake(self, data: memoryview) -> int:
        if self._blind:
            return len(data)
        if self._handshake is None:
            return 0
        before = len(self._handshake)
        self._handshake += data
        end = self._handshake.find(b"\r\n\r\n")
        if end < 0:
            self._blind = len(self._handshake) > _MAX_HANDSHAKE_BYTES
            return len(data)
        self._blind = not self._handshake.startswith(self._begins_with)
        self._handshake = None
        return len(data) if self._blind else end + 4 - before

    def _take_header(self, taken: memoryview) -> None:
        self._header += taken
        self._missing -= len(taken)
        if self._missing:
            return
        short = self._header[1] & _SHORT_LENGTH
        masked = bool(self._header[1] & _MASKED)
        size = _SHORTEST_HEADER + _LENGTH_BYTES.get(short, 0) + (_MASK_BYTES if masked else 0)
        self._missing = size - len(self._header)
        if self._missing:
            return
        self._length = short
        if short in _LENGTH_BYTES:
            self._length = int.from_bytes(self._header[_SHORTEST_HEADER:][: _LENGTH_BYTES[short]], "big")
        self._mask = bytes(self._header[-_MASK_BYTES:]) if masked else b""
        self._seen = 0
        self._head.clear()
        self._tail.clear()

    def _take(self, taken: memoryview) -> None:
        self._seen += len(taken)
        missing = _HEAD_BYTES - len(self._head)
        if missing > 0:
            self._head += taken[:missing]
        self._tail += taken[-_TAIL_BYTES:]
        del self._tail[:-_TAIL_BYTES]

    def _end(self) -> bytes:
        return _unmasked(self._tail, self._mask, self._length - len(self._tail))


def whole_message(data: memoryview) -> Message | None:
    """The message, if `data` is just one. It nearly always is, and `MessageReader` would take longer to find out."""
    size = len(data)
    if size < _SHORTEST_HEADER or data[0] != _FINAL_TEXT:
        return None
    length = data[1] & _SHORT_LENGTH
    begin = _SHORTEST_HEADER
    if length in _LENGTH_BYTES:
        begin += _LENGTH_BYTES[length]
        length = int.from_bytes(data[_SHORTEST_HEADER:begin], "big")
    mask = b""
    if data[1] & _MASKED:
        mask = bytes(data[begin : begin + _MASK_BYTES])
        begin += _MASK_BYTES
    if begin + length != size:
        return None
    tail = max(begin, size - _TAIL_BYTES)
    return Message(
        end=size,
        head=_unmasked(data[begin : begin + _HEAD_BYTES], mask, 0),
        tail=_unmasked(data[tail:], mask, tail - begin),
    )


def _unmasked(part: memoryview | bytearray, mask: bytes, offset: int) -> bytes:
    if not mask:
        return bytes(part)
    shift = offset % _MASK_BYTES
    key = (mask * (len(part) // _MASK_BYTES + 2))[shift : shift + len(part)]
    return (int.from_bytes(part, "big") ^ int.from_bytes(key, "big")).to_bytes(len(part), "big")


def text_frame(text: bytes) -> bytes:
    """A message as a server sends it. Of at most 65 535 bytes."""
    if len(text) < _LENGTH_IN_2_BYTES:
        return bytes((_FINAL_TEXT, len(text))) + text
    return struct.pack(">BBH", _FINAL_TEXT, _LENGTH_IN_2_BYTES, len(text)) + text
