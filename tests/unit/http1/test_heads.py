"""Which heads are accepted, and where their messages end."""

from __future__ import annotations

import pytest

from browser_shell.http1.heads import (
    Framing,
    HeadReader,
    MessageInvalid,
    Request,
    RequestHeadReader,
    Response,
    ResponseHeadReader,
    parse_request,
    parse_response,
    write_final_response,
)

KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
HANDSHAKE = ["Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", KEY]


def request(*lines: str, request_line: str = "POST /mcp HTTP/1.1") -> Request:
    return parse_request("\r\n".join([request_line, "Host: localhost", *lines]).encode("latin-1"))


def request_status(*lines: str, request_line: str = "POST /mcp HTTP/1.1") -> int:
    """Return the status of the refusal, or 200."""
    try:
        request(*lines, request_line=request_line)
    except MessageInvalid as invalid:
        return invalid.status
    return 200


def response(*lines: str, status_line: str = "HTTP/1.1 200 OK", method: bytes = b"GET") -> Response:
    return parse_response("\r\n".join([status_line, *lines]).encode("latin-1"), method=method)


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([], 200),
        (["Content-Length: 5"], 200),
        (["Content-Length:5\t "], 200),
        (["Transfer-Encoding: Chunked"], 200),
        (["Cookie: a", "Cookie: b"], 200),
        (["Expect: 100-Continue"], 200),
        (["Content-Length: 5", "Content-Length: 5"], 400),
        (["Content-Length: 5, 5"], 400),
        (["Content-Length: +5"], 400),
        (["Content-Length: -5"], 400),
        (["Content-Length: 0x5"], 400),
        (["Content-Length: 5 5"], 400),
        (["Content-Length:"], 400),
        (["Content-Length: " + "9" * 15], 200),
        (["Content-Length: " + "9" * 16], 400),
        (["Content-Length: \u00b2"], 400),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], 400),
        (["Content-Length: 5", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: gzip, chunked"], 400),
        (["Transfer-Encoding: identity"], 400),
        (["Transfer-Encoding: xchunked"], 400),
        (["Transfer-Encoding: chunked;q=1"], 400),
        (["Transfer-Encoding:\x0bchunked"], 400),
        (["Transfer-Encoding : chunked"], 400),
        ([" Transfer-Encoding: chunked"], 400),
        (["X: a", " folded"], 400),
        (["X: a", "\tfolded"], 400),
        (["no colon"], 400),
        ([": no name"], 400),
        (["X: \x00"], 400),
        (["X: \x7f"], 400),
        (["X: a\rb"], 400),
        (["X: a\nb"], 400),
        (["Host: evil.test"], 400),
        (["Authorization: a", "authorization: b"], 400),
        (["Origin: a", "ORIGIN: b"], 400),
        (["Content-Type: a", "Content-Type: a"], 400),
        (["Expect: 200-ok"], 417),
    ],
)
def test_ambiguous_request_headers_are_refused(lines: list[str], status: int) -> None:
    assert request_status(*lines) == status


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /mcp HTTP/1.1", 200),
        ("GET http://a.example/ HTTP/1.1", 200),
        ("CONNECT a.example:443 HTTP/1.1", 200),
        ("GET /mcp HTTP/1.0", 505),
        ("GET /mcp HTTP/2.0", 400),
        ("GET /mcp HTTP/0.9", 400),
        ("GET /mcp http/1.1", 400),
        ("GET /mcp", 400),
        ("GET  /mcp HTTP/1.1", 400),
        ("GET\t/mcp HTTP/1.1", 400),
        ("GET /mcp /v1 HTTP/1.1", 400),
        ("GET /mcp HTTP/1.1 ", 400),
        ("GET /m\u00e9 HTTP/1.1", 400),
        ("G(T /mcp HTTP/1.1", 400),
        ("A" * 33 + " /mcp HTTP/1.1", 400),
    ],
)
def test_request_line_has_one_form(request_line: str, status: int) -> None:
    assert request_status(request_line=request_line) == status


def test_request_needs_a_host() -> None:
    with pytest.raises(MessageInvalid, match="no Host header"):
        parse_request(b"GET /mcp HTTP/1.1")


@pytest.mark.parametrize("line", ["Content-Length: 1", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_get_and_head_requests_have_no_body(method: str, line: str) -> None:
    assert request_status(line, request_line=f"{method} /mcp HTTP/1.1") == 400
    assert request_status("Content-Length: 0", request_line=f"{method} /mcp HTTP/1.1") == 200


@pytest.mark.parametrize(
    ("lines", "framing", "length"),
    [
        ([], Framing.NONE, 0),
        (["Content-Length: 0"], Framing.LENGTH, 0),
        (["content-length: 12"], Framing.LENGTH, 12),
        (["TRANSFER-ENCODING: chunked"], Framing.CHUNKED, 0),
    ],
)
def test_request_framing(lines: list[str], framing: Framing, length: int) -> None:
    parsed = request(*lines)
    assert (parsed.framing, parsed.length) == (framing, length)


@pytest.mark.parametrize(
    ("line", "closes"),
    [
        ("Connection: keep-alive, Close", True),
        ("Proxy-Connection: close", True),
        ("Connection: keep-alive", False),
        ("X: close", False),
    ],
)
def test_client_that_closes_the_connection_is_recognised(line: str, closes: bool) -> None:
    assert request(line).closes is closes


def test_incomplete_websocket_handshake_is_none() -> None:
    def is_handshake(lines: list[str], request_line: str = "GET /vnc HTTP/1.1") -> bool:
        return request(*lines, request_line=request_line).is_websocket_handshake

    assert is_handshake(HANDSHAKE)
    for omitted in HANDSHAKE:
        assert not is_handshake([line for line in HANDSHAKE if line != omitted])
    assert not is_handshake(HANDSHAKE, "POST /vnc HTTP/1.1")
    assert not is_handshake([line.replace("websocket", "h2c") for line in HANDSHAKE])
    assert not is_handshake([line.replace("13", "8") for line in HANDSHAKE])
    assert not is_handshake([line.replace("ZQ==", "ZQ=") for line in HANDSHAKE])


@pytest.mark.parametrize(
    ("lines", "method", "status", "framing", "length"),
    [
        (["Content-Length: 5"], b"GET", 200, Framing.LENGTH, 5),
        (["Content-Length: 5", "content-length: 5"], b"GET", 200, Framing.LENGTH, 5),
        (["Content-Length: 5"], b"HEAD", 200, Framing.NONE, 5),
        (["Content-Length: 5"], b"GET", 304, Framing.NONE, 5),
        ([], b"GET", 204, Framing.NONE, None),
        ([], b"GET", 200, Framing.UNTIL_CLOSE, None),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], b"GET", 200, Framing.CHUNKED, None),
    ],
)
def test_response_framing(lines: list[str], method: bytes, status: int, framing: Framing, length: int | None) -> None:
    parsed = response(*lines, method=method, status_line=f"HTTP/1.1 {status} X")
    assert (parsed.status, parsed.framing, parsed.length) == (status, framing, length)


@pytest.mark.parametrize(
    ("head", "closes"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1", True),
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 204 No Content", False),
        (b"HTTP/1.1 200 OK\nConnection: x, CLOSE\nContent-Length: 1", True),
    ],
)
def test_server_that_closes_the_connection_is_recognised(head: bytes, closes: bool) -> None:
    assert parse_response(head, method=b"GET").closes is closes


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/2 200 OK",
        b"HTTP/1.1 999 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
        b"HTTP/1.1 200 OK\r\nX: a\rb",
        b"HTTP/1.1 200 OK\r\n folded",
    ],
)
def test_ambiguous_response_is_refused(head: bytes) -> None:
    with pytest.raises(MessageInvalid):
        parse_response(head, method=b"GET")


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("reader", "head", "empty_line"),
    [
        (RequestHeadReader, b"GET / HTTP/1.1\r\nHost: x", b"\r\n\r\n"),
        (ResponseHeadReader, b"HTTP/1.1 200 OK\r\nA: b", b"\r\n\r\n"),
        (ResponseHeadReader, b"HTTP/1.1 200 OK\nA: b", b"\n\n"),
        (ResponseHeadReader, b"HTTP/1.1 200 OK\nA: b", b"\n\r\n"),
    ],
)
def test_head_reader_finds_the_empty_line_however_the_bytes_are_split(
    reader: type[HeadReader], head: bytes, empty_line: bytes, size: int
) -> None:
    collected = reader(max_bytes=100)
    data = head + empty_line + b"\x00body"
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    found, rest = next(complete for piece in pieces if (complete := collected.feed(piece)) is not None)
    assert (found, rest + b"".join(pieces)) == (head, b"\x00body")


def test_head_reader_can_read_the_next_head() -> None:
    reader = RequestHeadReader(max_bytes=100)
    for target in (b"/1", b"/2"):
        assert reader.feed(b"GET " + target) is None
        assert reader.has_started
        assert reader.feed(b" HTTP/1.1\r\n\r\nrest") == (b"GET " + target + b" HTTP/1.1", b"rest")
        assert not reader.has_started


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n"])
def test_head_above_the_limit_is_refused(ending: bytes) -> None:
    with pytest.raises(MessageInvalid) as refused:
        RequestHeadReader(max_bytes=100).feed(b"GET / HTTP/1.1\r\nX: " + b"x" * 100 + ending)
    assert refused.value.status == 431


@pytest.mark.parametrize("start", [b"G", b"GET /mcp HT", b"GET /mcp HTTP/1.1\r", b"GET /mcp HTTP/1.1\r\nHost: x\r\n"])
def test_start_of_a_valid_request_is_accepted(start: bytes) -> None:
    for split in range(len(start)):
        reader = RequestHeadReader(max_bytes=100)
        assert [reader.feed(start[:split]), reader.feed(start[split:])] == [None, None]


@pytest.mark.parametrize(
    "start", [b"\n", b"\r\n", b"GET\n", b"G\x00", b"\x16\x03", b"GET /mcp\r\n", b"a\rb", b"x\r\nGET / HTTP/1.1\r\n"]
)
def test_input_that_cannot_become_a_request_is_refused_before_it_is_complete(start: bytes) -> None:
    with pytest.raises(MessageInvalid):
        RequestHeadReader(max_bytes=100).feed(start)
    reader = RequestHeadReader(max_bytes=100)
    with pytest.raises(MessageInvalid):
        list(map(reader.feed, (start[at : at + 1] for at in range(len(start)))))


@pytest.mark.parametrize("start", [b"\x00", b" HTTP/1.1 200 OK\r\n", b"SSH-2.0-x\n", b"HTTP/2 200\r\n"])
def test_input_that_cannot_become_a_response_is_refused_before_it_is_complete(start: bytes) -> None:
    with pytest.raises(MessageInvalid):
        ResponseHeadReader(max_bytes=100).feed(start)


def test_final_response_has_its_length_and_closes() -> None:
    assert write_final_response(404, "Not Found", {"A": "b"}, b"none") == (
        b"HTTP/1.1 404 Not Found\r\nA: b\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone"
    )
