"""Answers the driver's questions that Chromium no longer answers: those to a page that has gone in the meantime.

Chromium drops them, and the driver, which attaches to every page of the browser, would wait half a minute for each.
What passes is read, never changed: an answer is only ever added between two messages of Chromium.
"""

from __future__ import annotations

import json
import re
import struct
import threading
from collections.abc import Iterator
from typing import NamedTuple

from browser_shell.browser.devtools_version import KnownVersion

_HEAD_BYTES = 128
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
_QUESTION = re.compile(rb'\{"id":(\d{1,15}),')
_TO_PAGE = re.compile(rb'"sessionId":"([0-9A-F]{1,64})"\}\Z')
_ANSWER = re.compile(rb'\{"id":(\d{1,15}),')
_PAGE_GONE = re.compile(rb'\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([0-9A-F]{1,64})"')


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
        if self.between_messages and (whole := _whole_message(data)) is not None:
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


def _whole_message(data: memoryview) -> Message | None:
    """The message, if `data` is just one. It nearly always is, and this is several times as fast as the long way."""
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


class MissingAnswers:
    """Of one connection of the driver. Each direction has a thread of its own."""

    def __init__(self) -> None:
        self._from_driver = MessageReader(begins_with=b"GET ")
        self._from_browser = MessageReader(begins_with=b"HTTP/1.1 101 ")
        self._open: dict[int, bytes] = {}
        """The questions that wait for an answer, and the page that each was sent to."""
        self._lock = threading.Lock()
        self._version = KnownVersion()

    def known(self, data: memoryview) -> bytes | None:
        """The answer to `data`, if that is one whole question to which the browser has given its answer before.

        It may be handed to the driver only between two messages.
        """
        number = self._version.number_of(data) if self._from_driver.between_messages else None
        return self._version.answer_to(number) if number is not None else None

    @property
    def between_messages(self) -> bool:
        """Whether what the driver got so far ends with a message."""
        return self._from_browser.between_messages

    def note_questions(self, data: memoryview) -> None:
        """To be called before `data` is handed to the browser."""
        for message in self._from_driver.read(data):
            question, page = _QUESTION.match(message.head), _TO_PAGE.search(message.tail)
            if question and page:
                with self._lock:
                    self._open[int(question[1])] = page[1]

    def complete(self, data: memoryview) -> Iterator[memoryview | bytes]:
        """What the driver has to get: `data` as it is, and between its messages the answers that are missing."""
        sent = 0
        begins: int | None = 0 if self._from_browser.between_messages else None
        for message in self._from_browser.read(data):
            if answer := _ANSWER.match(message.head):
                with self._lock:
                    self._open.pop(int(answer[1]), None)
                if begins is not None and int(answer[1]) == self._version.waits_for:
                    self._version.learn(bytes(data[begins : message.end]))
            elif (gone := _PAGE_GONE.match(message.head)) and (missing := self._take_questions_to(gone[1])):
                yield data[sent : message.end]
                sent = message.end
                for number in missing:
                    yield _refusal(number, gone[1])
            begins = message.end
        if sent < len(data):
            yield data[sent:]

    def _take_questions_to(self, page: bytes) -> list[int]:
        with self._lock:
            numbers = [number for number, asked in self._open.items() if asked == page]
            for number in numbers:
                del self._open[number]
        return numbers


def _refusal(number: int, page: bytes) -> bytes:
    """In Chromium's own words for a question to a page that it does not know."""
    error = {"code": -32001, "message": "Session with given id not found."}
    text = json.dumps({"id": number, "error": error, "sessionId": page.decode("ascii")}).encode("ascii")
    return struct.pack(">BBH", _FINAL_TEXT, _LENGTH_IN_2_BYTES, len(text)) + text
