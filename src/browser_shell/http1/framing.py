"""HTTP/1.1 framing, read so strictly that no two readers can differ on where a request ends.

The parser behind it forgives much of what this refuses, and reads some of it differently. It never sees what came: it
gets a head that is composed anew of what was read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_HEAD_BYTES = 16 * 1024
MAX_TARGET_BYTES = 8 * 1024
MAX_HEADERS = 64
MAX_CHUNKS = 16 * 1024
"""A body of one-byte chunks costs more to read than it carries."""
MAX_HANDSHAKE_LINE_BYTES = 8 * 1024 - 64
"""The WebSocket library gives up on longer ones."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb"{1,32}) ([\x21-\x7e]+) HTTP/(1\.[01])")
_HEADER = re.compile(rb"(" + _TOKEN + rb"{1,256}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
"""All that could mean something here, though most are refused later. To the parser, CONNECT has no body."""
_NOT_HANDED_ON = frozenset({b"proxy-connection"})
"""Never a standard, and to the parser another name of Connection."""
_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
_LONGEST_SIZE_LINE = 8
_NOT_HTTP = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?:^|[^\r])\n|\r[^\n]")
_ONCE = frozenset(
    {
        b"host",
        b"content-length",
        b"transfer-encoding",
        b"content-type",
        b"content-encoding",
        b"authorization",
        b"origin",
        b"expect",
        b"upgrade",
        b"sec-websocket-key",
        b"sec-websocket-version",
        b"mcp-session-id",
        b"mcp-protocol-version",
    }
)
"""Readers disagree on which of two counts, so there may not be two."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request is not read any further."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Of a request line and headers, what says where the request ends and what it may become."""

    request_line: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    path: bytes
    length: int
    chunked: bool
    websocket: bool
    """It asks for the only other protocol that is spoken here, and in full."""

    def composed(self, *, upgrade: bool) -> bytes:
        """Without `upgrade` it offers no other protocol. Where one is offered, the parser stops, and what follows, be
        it the body, is a new request for it.
        """
        lines = [self.request_line]
        for name, value in self.fields:
            lines.append(name + b": " + (value if upgrade or name != b"connection" else _without_upgrade(value)))
        return b"\r\n".join(lines) + b"\r\n\r\n"


def _without_upgrade(options: bytes) -> bytes:
    return b",".join(option for option in options.split(b",") if option.strip(b" \t").lower() != b"upgrade")


def looks_wrong(beginning: bytes | bytearray, *, known_good: int = 0) -> bool:
    """Whether a head that is not complete yet can never become one: binary, or lines that do not end as they must.

    The first `known_good` bytes were looked at before.
    """
    if _NOT_HTTP.search(beginning, max(0, known_good - 1)) is not None:
        return True
    line_end = beginning.find(b"\r\n", max(0, known_good - 1))
    begins_here = line_end >= 0 and b"\r\n" not in beginning[:line_end]
    return begins_here and _REQUEST_LINE.fullmatch(beginning, 0, line_end) is None


def read_head(head: bytes) -> Head | Fault:
    """Judge a head up to and with its empty line."""
    request_line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    request = _read_request_line(request_line)
    if isinstance(request, Fault):
        return request
    method, target = request
    if len(lines) > MAX_HEADERS:
        return Fault(431, "too many headers")
    headers: dict[bytes, bytes] = {}
    fields: list[tuple[bytes, bytes]] = []
    for line in lines:
        field = _HEADER.fullmatch(line)
        if field is None:
            return Fault(400, "not a header")
        name, value = field[1].lower(), field[2].rstrip(b" \t")
        if name in headers and name in _ONCE:
            return Fault(400, "a header that may come once came twice")
        headers[name] = value
        if name not in _NOT_HANDED_ON:
            fields.append((name, value))
    return _frame(method, headers) or Head(
        request_line=request_line,
        fields=tuple(fields),
        path=target.partition(b"?")[0],
        length=int(headers.get(b"content-length", b"0")),
        chunked=b"transfer-encoding" in headers,
        websocket=_asks_for_websocket(method, headers, lines),
    )


def _read_request_line(line: bytes) -> tuple[bytes, bytes] | Fault:
    request = _REQUEST_LINE.fullmatch(line)
    if request is None:
        return Fault(400, "not an HTTP/1.1 request")
    method, target, version = request.groups()
    if len(target) > MAX_TARGET_BYTES:
        return Fault(414, "the target is too long")
    if not target.startswith(b"/") or b"#" in target:
        return Fault(400, "the target is not a path")
    if method not in _METHODS:
        return Fault(501, "no such method")
    if version != b"1.1":
        return Fault(505, "only HTTP/1.1 is spoken here")
    return method, target


def _frame(method: bytes, headers: dict[bytes, bytes]) -> Fault | None:
    length, coding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
    if b"host" not in headers:
        return Fault(400, "no Host header")
    if length is not None and not _LENGTH.fullmatch(length):
        return Fault(400, "Content-Length is not a number")
    if coding is not None and (length is not None or coding.lower() != b"chunked"):
        return Fault(400, "a Transfer-Encoding that is not just chunked")
    if method in (b"GET", b"HEAD") and (coding is not None or int(length or b"0") > 0):
        return Fault(400, "a body where none belongs")
    if headers.get(b"expect", b"100-continue").lower() != b"100-continue":
        return Fault(417, "cannot meet that expectation")
    return None


def _asks_for_websocket(method: bytes, headers: dict[bytes, bytes], lines: list[bytes]) -> bool:
    options = [option.strip().lower() for option in headers.get(b"connection", b"").split(b",")]
    return (
        method == b"GET"
        and b"upgrade" in options
        and headers.get(b"upgrade", b"").lower() == b"websocket"
        and re.fullmatch(rb"[A-Za-z0-9+/]{22}==", headers.get(b"sec-websocket-key", b"")) is not None
        and headers.get(b"sec-websocket-version") == b"13"
        and all(len(line) <= MAX_HANDSHAKE_LINE_BYTES for line in lines)
    )


class LengthFraming:
    """A body of a known length."""

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def done(self) -> bool:
        return self._left == 0

    def take(self, data: bytes) -> int | Fault:
        """How many of these bytes belong to the body."""
        taken = min(len(data), self._left)
        self._left -= taken
        return taken


class ChunkedFraming:
    """A body in chunks: no extensions, no trailers, no line that ends in anything but CR LF."""

    def __init__(self) -> None:
        self.done = False
        self._line = bytearray()
        self._data_left = 0
        self._end_left = b""
        """What must come next, exactly: the CR LF behind a chunk's data, or behind the last chunk."""
        self._chunks = 0
        self._last = False

    def take(self, data: bytes) -> int | Fault:
        """How many of these bytes belong to the body."""
        at = 0
        while at < len(data) and not self.done:
            if self._data_left:
                taken = min(len(data) - at, self._data_left)
                self._data_left -= taken
                at += taken
            elif self._end_left:
                if data[at] != self._end_left[0]:
                    return Fault(400, "a chunk does not end where it says")
                self._end_left = self._end_left[1:]
                at += 1
                self.done = self._last and not self._end_left
            else:
                taken_or_fault = self._take_size(data, at)
                if isinstance(taken_or_fault, Fault):
                    return taken_or_fault
                at = taken_or_fault
        return at

    def _take_size(self, data: bytes, at: int) -> int | Fault:
        room = _LONGEST_SIZE_LINE + 2 - len(self._line)
        end = data.find(b"\n", at, at + room)
        self._line += data[at : end + 1] if end >= 0 else data[at : at + room]
        if end < 0:
            too_long = len(self._line) >= _LONGEST_SIZE_LINE + 2
            return Fault(400, "not a chunk size") if too_long else len(data)
        line, self._line = bytes(self._line), bytearray()
        if not line.endswith(b"\r\n") or not _CHUNK_SIZE.fullmatch(line[:-2]):
            return Fault(400, "not a chunk size")
        self._chunks += 1
        if self._chunks > MAX_CHUNKS:
            return Fault(413, "too many chunks")
        self._data_left = int(line[:-2], 16)
        self._last = self._data_left == 0
        self._end_left = b"\r\n"
        return end + 1
