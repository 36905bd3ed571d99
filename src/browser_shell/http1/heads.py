"""HTTP/1.1 heads as bytes: what they say, and where the message that they begin ends. Strict, and without I/O.

RFC 9112. Written for speed: a page has a hundred resources, and a parser for every case costs half a millisecond each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Fields: TypeAlias = list[tuple[bytes, bytes]]

_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([!-~]+) HTTP/1\.1")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t -~\x80-\xff]*))?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t -~\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t -~\x80-\xff]*)?")
# Between two hops only; RFC 9110 section 7.6.1. The rest of a message is the origin's and the browser's business.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"proxy-connection",
        b"proxy-authorization",
        b"proxy-authenticate",
        b"keep-alive",
        b"te",
        b"upgrade",
    }
)
# What says where a message ends, and for whom it is. We write these ourselves, so that they are said once.
_OURS = frozenset({b"host", b"content-length", b"transfer-encoding", b"trailer"})


class MessageInvalid(Exception):
    """Not HTTP, or HTTP with two meanings."""

    def __init__(self, what: str, *, status: int = 400) -> None:
        super().__init__(what)
        self.status = status


class Framing(Enum):
    """Where a body ends."""

    NONE = "there is none"
    LENGTH = "after so many bytes"
    CHUNKED = "with an empty chunk"
    CLOSE = "with the connection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The head of a request."""

    method: bytes
    target: str
    fields: Fields
    framing: Framing
    length: int
    closes: bool
    """Whether the client wants to end after this exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The head of a response."""

    status: int
    reason: bytes
    fields: Fields
    framing: Framing
    length: int
    closes: bool


def parse_request(head: bytes) -> Request:
    """From the bytes before the empty line. Raises: MessageInvalid."""
    first, *rest = head.split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise MessageInvalid("no request line")
    fields = _parse_fields(rest)
    if sum(name.lower() == b"host" for name, _ in fields) != 1:
        raise MessageInvalid("there must be one Host")
    lengths, codings = _values(fields, b"content-length"), _values(fields, b"transfer-encoding")
    if lengths and codings:
        raise MessageInvalid("two ways to say where the body ends")
    framing, length = _framing(lengths, codings) if lengths or codings else (Framing.NONE, 0)
    return Request(
        method=line[1],
        target=line[2].decode("ascii"),
        fields=fields,
        framing=framing,
        length=length,
        closes=b"close" in _tokens(fields),
    )


def parse_response(head: bytes, *, method: bytes) -> Response:
    """From the bytes before the empty line of an answer to `method`. Raises: MessageInvalid."""
    # Old servers end their lines without a carriage return, and browsers let them.
    first, *rest = head.replace(b"\r\n", b"\n").split(b"\n")
    line = _STATUS_LINE.fullmatch(first)
    if line is None:
        raise MessageInvalid("no status line")
    fields = _parse_fields(rest)
    status = int(line[2])
    codings = _values(fields, b"transfer-encoding")
    framing, length = _framing([] if codings else _values(fields, b"content-length"), codings)
    bodiless = method == b"HEAD" or status < 200 or status in (204, 304)
    return Response(
        status=status,
        reason=line[3] or b"",
        fields=fields,
        framing=Framing.NONE if bodiless else framing,
        length=length if framing is Framing.LENGTH else -1,
        closes=line[1] == b"0" or b"close" in _tokens(fields) or (framing is Framing.CLOSE and not bodiless),
    )


def write_request(request: Request, *, path: str, authority: str) -> bytes:
    """The head as the origin gets it: with the host that was judged, and one word about the body's end."""
    lines = [b"%s %s HTTP/1.1" % (request.method, path.encode("ascii")), b"Host: " + authority.encode("ascii")]
    lines += _end_to_end(request.fields)
    if request.framing is Framing.CHUNKED:
        lines.append(b"Transfer-Encoding: chunked")
    elif request.framing is Framing.LENGTH:
        lines.append(b"Content-Length: %d" % request.length)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def write_response(response: Response, *, closes: bool) -> bytes:
    """The head as the browser gets it. A body that ended with its connection becomes a chunked one."""
    lines = [b"HTTP/1.1 %d %s" % (response.status, response.reason), *_end_to_end(response.fields)]
    if response.framing in (Framing.CHUNKED, Framing.CLOSE):
        lines.append(b"Transfer-Encoding: chunked")
    elif response.length >= 0:
        lines.append(b"Content-Length: %d" % response.length)
    if closes:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def chunk_size(line: bytes) -> int:
    """Raises: MessageInvalid."""
    found = _CHUNK_LINE.fullmatch(line)
    if found is None:
        raise MessageInvalid("no chunk size")
    return int(found[1], 16)


def _parse_fields(lines: list[bytes]) -> Fields:
    fields: Fields = []
    for line in lines:
        found = _FIELD.fullmatch(line)
        if found is None:
            raise MessageInvalid("no header line")
        fields.append((found[1], found[2].strip(b" \t")))
    return fields


def _values(fields: Fields, name: bytes) -> list[bytes]:
    return [value for field, value in fields if field.lower() == name]


def _framing(lengths: list[bytes], codings: list[bytes]) -> tuple[Framing, int]:
    if codings:
        if [coding.lower() for coding in codings] != [b"chunked"]:
            raise MessageInvalid("an unknown transfer coding", status=501)
        return Framing.CHUNKED, 0
    if not lengths:
        return Framing.CLOSE, 0
    if len(set(lengths)) != 1 or not _LENGTH.fullmatch(lengths[0]):
        raise MessageInvalid("no one length")
    return Framing.LENGTH, int(lengths[0])


def _tokens(fields: Fields) -> set[bytes]:
    """What the Connection headers name."""
    named = b",".join(_values(fields, b"connection") + _values(fields, b"proxy-connection"))
    return {token.strip(b" \t").lower() for token in named.split(b",")} if named else set()


def _end_to_end(fields: Fields) -> list[bytes]:
    dropped = _HOP_BY_HOP | _OURS | _tokens(fields)
    return [b"%s: %s" % (name, value) for name, value in fields if name.lower() not in dropped]
