"""Add the DevTools replies that Chromium leaves out.

Chromium does not reply to requests to a page that closes before it has handled them. The driver attaches to every
page of the browser, and would wait 30 s for each of those replies. The relay forwards all bytes unchanged and adds an
error reply after the message that reports the page's end.
"""

from __future__ import annotations

import json
import re
import struct
import threading
from collections.abc import Iterator
from typing import NamedTuple

_REQUEST_ID = re.compile(rb'\{"id":(\d{1,15}),"method":"[A-Za-z.]{1,64}"')
_REQUEST_SESSION = re.compile(rb'"sessionId":"([0-9A-F]{1,64})"\}\Z')
_REPLY_ID = re.compile(rb'\{"id":(\d{1,15}),')
_DETACHED_SESSION = re.compile(rb'\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([0-9A-F]{1,64})"')
_HEAD_BYTES = 192
_TAIL_BYTES = 64
_MAX_HANDSHAKE_BYTES = 64 * 1024
_FINAL_TEXT = 0x81
_MASKED = 0x80
_MASK_BYTES = 4
_MIN_HEADER_BYTES = 2
_LENGTH_MASK = 0x7F
_LENGTH_IN_2_BYTES = 126
_EXTENDED_LENGTH_BYTES = {_LENGTH_IN_2_BYTES: 2, 127: 8}


class RelayRepair:
    """The open requests of one connection. Each direction is used by a thread of its own."""

    def __init__(self) -> None:
        self._requests = _MessageReader(handshake_start=b"GET ")
        self._replies = _MessageReader(handshake_start=b"HTTP/1.1 101 ")
        self._open: dict[int, bytes] = {}
        """Request id to CDP session, for requests without a reply."""
        self._lock = threading.Lock()

    def note_requests(self, data: memoryview) -> None:
        """Record the requests in `data`. Call it before `data` is sent to the browser."""
        for message in self._requests.read(data):
            request, session = _REQUEST_ID.match(message.head), _REQUEST_SESSION.search(message.tail)
            if request is not None and session is not None:
                with self._lock:
                    self._open[int(request[1])] = session[1]

    def complete_replies(self, data: memoryview) -> Iterator[memoryview | bytes]:
        """Yield `data` unchanged, with missing replies between its messages."""
        sent = 0
        for message in self._replies.read(data):
            if reply := _REPLY_ID.match(message.head):
                with self._lock:
                    self._open.pop(int(reply[1]), None)
            elif detached := _DETACHED_SESSION.match(message.head):
                for request_id in self._take_requests_to(detached[1]):
                    if sent < message.end:
                        yield data[sent : message.end]
                        sent = message.end
                    yield _session_not_found(request_id, detached[1])
        if sent < len(data):
            yield data[sent:]

    def _take_requests_to(self, session: bytes) -> list[int]:
        with self._lock:
            request_ids = [request_id for request_id, target in self._open.items() if target == session]
            for request_id in request_ids:
                del self._open[request_id]
        return request_ids


def _session_not_found(request_id: int, session: bytes) -> bytes:
    """The error that Chromium sends for a request to an unknown CDP session."""
    error = {"code": -32001, "message": "Session with given id not found."}
    text = json.dumps({"id": request_id, "error": error, "sessionId": session.decode("ascii")})
    return _text_frame(text.encode("ascii"))


# WebSocket messages (RFC 6455 §5.2) in a byte stream that is forwarded.


class _Message(NamedTuple):
    """A complete text message, of which only the beginning and the end are kept."""

    end: int
    """Offset of the first byte after it, in the data passed to `read`."""
    head: bytes
    """At most 192 bytes."""
    tail: bytes
    """At most 64 bytes."""


class _MessageReader:
    """Finds the unfragmented text messages in one direction of a WebSocket connection; skips other frames."""

    def __init__(self, *, handshake_start: bytes) -> None:
        self._handshake_start = handshake_start
        self._handshake: bytearray | None = bytearray()
        """None once the handshake is over."""
        self._is_websocket = True
        self._header = bytearray()
        self._header_missing = _MIN_HEADER_BYTES
        self._mask = b""
        self._length = 0
        self._seen = 0
        self._head = bytearray()
        self._tail = bytearray()

    def read(self, data: memoryview) -> Iterator[_Message]:
        """Yield the messages that end within `data`; none on a connection that does not become a WebSocket."""
        position = self._skip_handshake(data)
        while position < len(data):
            if self._header_missing:
                part = data[position : position + self._header_missing]
                position += len(part)
                self._add_header(part)
                if self._header_missing:
                    continue
            else:
                part = data[position : position + self._length - self._seen]
                position += len(part)
                self._add_payload(part)
            if self._seen == self._length:
                if self._header[0] == _FINAL_TEXT:
                    yield self._message(position)
                self._header.clear()
                self._header_missing = _MIN_HEADER_BYTES

    def _skip_handshake(self, data: memoryview) -> int:
        """Return the offset of the first WebSocket byte."""
        if self._handshake is None:
            return 0 if self._is_websocket else len(data)
        already = len(self._handshake)
        self._handshake += data
        end = self._handshake.find(b"\r\n\r\n")
        if end < 0 and len(self._handshake) <= _MAX_HANDSHAKE_BYTES:
            return len(data)
        self._is_websocket = end >= 0 and self._handshake.startswith(self._handshake_start)
        self._handshake = None
        return end + 4 - already if self._is_websocket else len(data)

    def _add_header(self, part: memoryview) -> None:
        self._header += part
        self._header_missing -= len(part)
        if self._header_missing:
            return
        length = self._header[1] & _LENGTH_MASK
        length_bytes = _EXTENDED_LENGTH_BYTES.get(length, 0)
        is_masked = bool(self._header[1] & _MASKED)
        self._header_missing = _MIN_HEADER_BYTES + length_bytes + _MASK_BYTES * is_masked - len(self._header)
        if self._header_missing:
            return
        if length_bytes:
            length = int.from_bytes(self._header[_MIN_HEADER_BYTES : _MIN_HEADER_BYTES + length_bytes], "big")
        self._length, self._seen = length, 0
        self._mask = bytes(self._header[-_MASK_BYTES:]) if is_masked else b""
        self._head.clear()
        self._tail.clear()

    def _add_payload(self, part: memoryview) -> None:
        self._seen += len(part)
        self._head += part[: max(0, _HEAD_BYTES - len(self._head))]
        self._tail += part[-_TAIL_BYTES:]
        del self._tail[:-_TAIL_BYTES]

    def _message(self, end: int) -> _Message:
        tail_offset = self._length - len(self._tail)
        return _Message(end, _unmask(self._head, self._mask, 0), _unmask(self._tail, self._mask, tail_offset))


def _unmask(part: bytearray, mask: bytes, offset: int) -> bytes:
    """Apply the masking key (RFC 6455 §5.3) to a part that starts at `offset` of its payload."""
    if not mask:
        return bytes(part)
    shift = offset % _MASK_BYTES
    key = (mask * (len(part) // _MASK_BYTES + 2))[shift : shift + len(part)]
    return (int.from_bytes(part, "big") ^ int.from_bytes(key, "big")).to_bytes(len(part), "big")


def _text_frame(text: bytes) -> bytes:
    """Encode an unmasked text frame, as servers send it. `text` has at most 65 535 bytes."""
    if len(text) < _LENGTH_IN_2_BYTES:
        return bytes((_FINAL_TEXT, len(text))) + text
    return struct.pack(">BBH", _FINAL_TEXT, _LENGTH_IN_2_BYTES, len(text)) + text
