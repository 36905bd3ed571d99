"""Message heads: the start line and the header fields.

The parser accepts less than RFC 9112 allows. It refuses a head that two parsers could read differently, because such a
difference makes request smuggling possible (RFC 9112 §11.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb"{1,32}) ([!-~]+) HTTP/1\.([01])")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t -~\x80-\xff]*))?")
_FIELD = re.compile(rb"(" + _TOKEN + rb"+):([\t -~\x80-\xff]*)")
_CONTENT_LENGTH = re.compile(rb"[0-9]{1,15}")
_WEBSOCKET_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
_CONTROL_CHARACTER = rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_SINGLETONS = (
    b"authorization content-encoding content-length content-type expect host mcp-protocol-version mcp-session-id "
    b"origin sec-websocket-key sec-websocket-version transfer-encoding upgrade"
).split()
"""Request fields that may occur at most once. Implementations differ in whether the first or the last of two counts."""


class MessageInvalid(Exception):
    """A message that is not HTTP/1.1, or that has more than one possible reading."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        """HTTP status of the answer to a request that is refused for this reason."""


class Framing(Enum):
    """How the end of a body is found (RFC 9112 §6.3)."""

    NONE = auto()
    LENGTH = auto()
    CHUNKED = auto()
    UNTIL_CLOSE = auto()


class Headers:
    """Header fields in the order received. Lookups take names in lower case."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Parse field lines. Raises: MessageInvalid."""
        self._fields: list[tuple[bytes, bytes]] = []
        self._values: dict[bytes, list[bytes]] = {}
        for line in lines:
            field = _FIELD.fullmatch(line)
            if field is None:
                raise MessageInvalid("malformed header")
            name, value = field[1], field[2].strip(b" \t")
            self._fields.append((name, value))
            self._values.setdefault(name.lower(), []).append(value)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield names as they were received, with their values."""
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __contains__(self, name: bytes) -> bool:
        return name in self._values

    def get(self, name: bytes, default: bytes = b"") -> bytes:
        """Return the first value."""
        return self._values[name][0] if name in self._values else default

    def get_all(self, name: bytes) -> list[bytes]:
        return self._values.get(name, [])

    def list_members(self, name: bytes) -> set[bytes]:
        """Return the members of a comma-separated list (RFC 9110 §5.6.1) in lower case."""
        return {member.strip(b" \t").lower() for value in self.get_all(name) for member in value.split(b",")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The head of a request."""

    method: bytes
    target: bytes
    headers: Headers
    framing: Framing
    length: int
    """Bytes in the body. 0 unless the framing is LENGTH."""

    @property
    def closes(self) -> bool:
        """Whether the client closes the connection after the response."""
        # Clients of a proxy may write Proxy-Connection instead (RFC 9112 §C.2.2).
        return any(b"close" in self.headers.list_members(name) for name in (b"connection", b"proxy-connection"))

    @property
    def is_websocket_handshake(self) -> bool:
        """Whether this is a complete opening handshake (RFC 6455 §4.2.1)."""
        return (
            self.method == b"GET"
            and b"upgrade" in self.headers.list_members(b"connection")
            and self.headers.get(b"upgrade").lower() == b"websocket"
            and self.headers.get(b"sec-websocket-version") == b"13"
            and _WEBSOCKET_KEY.fullmatch(self.headers.get(b"sec-websocket-key")) is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The head of a response."""

    status: int
    reason: bytes
    headers: Headers
    framing: Framing
    length: int | None
    """Content-Length. Present without a body in the response to a HEAD request."""
    closes: bool
    """Whether the server closes the connection after this response."""


class HeadReader:
    """Collects the bytes of a head, in time linear in their number however they are split."""

    _empty_line: ClassVar[re.Pattern[bytes]]
    _invalid_bytes: ClassVar[re.Pattern[bytes]]
    _start_line: ClassVar[re.Pattern[bytes]]

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._received = bytearray()
        self._has_start_line = False

    @property
    def has_started(self) -> bool:
        """Whether a part of a head has been received."""
        return bool(self._received)

    def feed(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the head without its empty line and the bytes after it; None while the head is incomplete.

        Raises: MessageInvalid as soon as the bytes cannot become a valid head.
        """
        checked = len(self._received)
        self._received += data
        # Both searches also cover the last bytes of the previous call, where a match may start.
        empty_line = self._empty_line.search(self._received, max(0, checked - 3))
        end = empty_line.end() if empty_line else len(self._received)
        if self._invalid_bytes.search(self._received, max(0, checked - 1), end):
            raise MessageInvalid("not HTTP/1.1")
        if end > self._max_bytes:
            raise MessageInvalid("the head is too large", status=431)
        if not self._has_start_line and (line_end := self._received.find(b"\n", checked)) >= 0:
            if not self._start_line.fullmatch(self._received[:line_end].removesuffix(b"\r")):
                raise MessageInvalid("not HTTP/1.1")
            self._has_start_line = True
        if empty_line is None:
            return None
        head, rest = bytes(self._received[: empty_line.start()]), bytes(self._received[end:])
        self._received.clear()
        self._has_start_line = False
        return head, rest


class RequestHeadReader(HeadReader):
    """Collects the head of a request. Its lines end in CR LF."""

    _empty_line = re.compile(rb"\r\n\r\n")
    _invalid_bytes = re.compile(_CONTROL_CHARACTER + rb"|(?:^|[^\r])\n|\r[^\n]")
    _start_line = _REQUEST_LINE


class ResponseHeadReader(HeadReader):
    """Collects the head of a response. Its lines may end in LF alone, as old servers write them (RFC 9112 §2.2)."""

    _empty_line = re.compile(rb"\r?\n\r?\n")
    _invalid_bytes = re.compile(_CONTROL_CHARACTER)
    _start_line = _STATUS_LINE


def parse_request(head: bytes) -> Request:
    """Parse the bytes before the empty line. Raises: MessageInvalid."""
    request_line, *lines = head.split(b"\r\n")
    matched = _REQUEST_LINE.fullmatch(request_line)
    if matched is None:
        raise MessageInvalid("not an HTTP/1.1 request")
    method, target, minor_version = matched.groups()
    if minor_version != b"1":
        raise MessageInvalid("only HTTP/1.1 is supported", status=505)
    headers = Headers(lines)
    for name in _SINGLETONS:
        if len(headers.get_all(name)) > 1:
            raise MessageInvalid(f"more than one {name.decode()} header")
    if b"host" not in headers:
        raise MessageInvalid("no Host header")  # RFC 9112 §3.2
    if headers.get(b"expect", b"100-continue").lower() != b"100-continue":
        raise MessageInvalid("unknown expectation", status=417)
    framing, length = _request_framing(headers)
    if method in (b"GET", b"HEAD") and (framing is Framing.CHUNKED or length):
        raise MessageInvalid("a GET or HEAD request has no body")  # RFC 9110 §9.3.1 warns of smuggling
    return Request(method=method, target=target, headers=headers, framing=framing, length=length)


def parse_response(head: bytes, *, method: bytes) -> Response:
    """Parse the bytes before the empty line of a response to a `method` request. Raises: MessageInvalid."""
    status_line, *lines = head.replace(b"\r\n", b"\n").split(b"\n")
    matched = _STATUS_LINE.fullmatch(status_line)
    if matched is None:
        raise MessageInvalid("not an HTTP/1.1 response")
    headers, status = Headers(lines), int(matched[2])
    framing, length = _response_framing(headers)
    # RFC 9112 §6.3: these responses end with their head, whatever their headers announce.
    if method == b"HEAD" or status < 200 or status in (204, 304):
        framing = Framing.NONE
    is_http_1_0 = matched[1] == b"0"
    return Response(
        status=status,
        reason=matched[3] or b"",
        headers=headers,
        framing=framing,
        length=length,
        closes=is_http_1_0 or framing is Framing.UNTIL_CLOSE or b"close" in headers.list_members(b"connection"),
    )


def _request_framing(headers: Headers) -> tuple[Framing, int]:
    if b"transfer-encoding" in headers:
        # RFC 9112 §6.3: a request with both is refused, as an attempt to smuggle a second one.
        if b"content-length" in headers:
            raise MessageInvalid("both Transfer-Encoding and Content-Length")
        _require_chunked(headers)
        return Framing.CHUNKED, 0
    if b"content-length" in headers:
        return Framing.LENGTH, _content_length(headers)
    return Framing.NONE, 0


def _response_framing(headers: Headers) -> tuple[Framing, int | None]:
    if b"transfer-encoding" in headers:
        # RFC 9112 §6.3: in a response, Transfer-Encoding overrides Content-Length.
        _require_chunked(headers)
        return Framing.CHUNKED, None
    if b"content-length" in headers:
        return Framing.LENGTH, _content_length(headers)
    return Framing.UNTIL_CLOSE, None


def _require_chunked(headers: Headers) -> None:
    if [coding.lower() for coding in headers.get_all(b"transfer-encoding")] != [b"chunked"]:
        raise MessageInvalid("a Transfer-Encoding other than chunked")


def _content_length(headers: Headers) -> int:
    # RFC 9110 §8.6 allows a recipient to accept a repeated value. Origins send it, and browsers accept it.
    values = set(headers.get_all(b"content-length"))
    value = values.pop()
    if values or not _CONTENT_LENGTH.fullmatch(value):
        raise MessageInvalid("invalid Content-Length")
    return int(value)


def write_head(start_line: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Serialise a head with its empty line."""
    return b"\r\n".join([start_line, *(b"%s: %s" % field for field in fields), b"", b""])


def write_final_response(status: int, reason: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Serialise a whole response that announces the end of its connection."""
    fields = {**headers, "Content-Length": str(len(body)), "Connection": "close"}
    encoded = ((name.encode("ascii"), value.encode("latin-1")) for name, value in fields.items())
    return write_head(f"HTTP/1.1 {status} {reason}".encode("ascii"), encoded) + body
