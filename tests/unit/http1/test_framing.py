"""Where a request ends, and which heads are not read at all."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.http1.framing import (
    MAX_CHUNKS,
    MAX_HEADERS,
    MAX_TARGET_BYTES,
    ChunkedFraming,
    Fault,
    Head,
    LengthFraming,
    looks_wrong,
    read_head,
)

KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = ["Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", KEY]


def head(*lines: str, request: str = "POST /mcp HTTP/1.1") -> Head | Fault:
    return read_head("\r\n".join([request, "Host: localhost", *lines]).encode("latin-1") + b"\r\n\r\n")


def status(*lines: str, request: str = "POST /mcp HTTP/1.1") -> int:
    read = head(*lines, request=request)
    return read.status if isinstance(read, Fault) else 200


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize(
    ("lines", "expected"),
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
        ([f"X{number}: v" for number in range(MAX_HEADERS - 1)], 200),
        ([f"X{number}: v" for number in range(MAX_HEADERS)], 431),
    ],
)
def test_headers_have_one_reading_or_none(lines: list[str], expected: int) -> None:
    assert status(*lines) == expected


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("GET /mcp HTTP/1.1", 200),
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
        ("GET http://localhost/mcp HTTP/1.1", 400),
        ("GET localhost/mcp HTTP/1.1", 400),
        ("GET /mcp#x HTTP/1.1", 400),
        ("GET ?/mcp HTTP/1.1", 400),
        ("OPTIONS * HTTP/1.1", 400),
        ("CONNECT localhost:443 HTTP/1.1", 400),
        ("CONNECT /mcp HTTP/1.1", 501),
        ("PRI /mcp HTTP/1.1", 501),
        ("M-SEARCH /mcp HTTP/1.1", 501),
        ("get /mcp HTTP/1.1", 501),
        ("OPTIONS /mcp HTTP/1.1", 200),
        (f"GET /{'a' * (MAX_TARGET_BYTES - 1)} HTTP/1.1", 200),
        (f"GET /{'a' * MAX_TARGET_BYTES} HTTP/1.1", 414),
    ],
)
def test_a_request_line_has_one_form(request_line: str, expected: int) -> None:
    assert status(request=request_line) == expected


def test_a_host_is_needed() -> None:
    assert read_head(b"GET /mcp HTTP/1.1\r\n\r\n") == Fault(400, "no Host header")


@pytest.mark.parametrize("line", ["Content-Length: 1", "Transfer-Encoding: chunked"])
def test_a_get_has_no_body(line: str) -> None:
    assert status(line, request="GET /mcp HTTP/1.1") == 400
    assert status("Content-Length: 0", request="GET /mcp HTTP/1.1") == 200


def asks(*lines: str, request: str = "GET /vnc HTTP/1.1") -> bool:
    read = head(*lines, request=request)
    assert isinstance(read, Head)
    return read.websocket


def test_a_websocket_is_asked_for_in_full_or_not_at_all() -> None:
    assert asks(*UPGRADE)
    for left_out in UPGRADE:
        assert not asks(*(line for line in UPGRADE if line != left_out))
    assert not asks(*UPGRADE, request="POST /vnc HTTP/1.1")
    assert not asks(*(line.replace("websocket", "h2c") for line in UPGRADE))
    assert not asks(*(line.replace("13", "8") for line in UPGRADE))
    assert not asks(*(line.replace("ZQ==", "ZQ=") for line in UPGRADE))
    assert not asks(*UPGRADE, "X: " + "x" * 9000)


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("Connection: Upgrade, HTTP2-Settings", "connection:  HTTP2-Settings"),
        ("connection: close ,\tUPGRADE\t", "connection: close "),
        ("CONNECTION:upgrade", "connection: "),
        ("Connection: keep-alive, upgraded", "connection: keep-alive, upgraded"),
        ("X-Connection: upgrade", "x-connection: upgrade"),
        ("X-Spaces:   a  b \t ", "x-spaces: a  b"),
    ],
)
def test_what_is_handed_on_is_composed_anew_and_offers_no_other_protocol(line: str, left: str) -> None:
    read = head(line, "Upgrade: h2c")
    assert isinstance(read, Head)
    assert read.composed(upgrade=False) == (
        f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{left}\r\nupgrade: h2c\r\n\r\n".encode()
    )


def test_a_second_name_of_connection_is_not_handed_on() -> None:
    read = head("Proxy-Connection: upgrade", "X: y")
    assert isinstance(read, Head)
    assert read.composed(upgrade=False) == b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: y\r\n\r\n"


class Reader:
    """What the parser behind the framing makes of the same bytes."""

    def __init__(self) -> None:
        self.body = b""
        self.ends = 0

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.ends += 1


_OPTIONS = st.lists(
    st.sampled_from(
        ["upgrade", "Upgrade", "UPGRADE", "keep-alive", "close", "x", "", " ", "\t", ",", ", ", "\t,", "\xff"]
    ),
    max_size=4,
).map("".join)
_LINES = st.one_of(
    st.sampled_from(
        [
            "Content-Length: 4",
            "Content-Length: 0",
            "content-length:  04\t",
            "Transfer-Encoding: chunked",
            "transfer-encoding:CHUNKED\t",
            "Transfer-Encoding: identity",
            "Upgrade: h2c",
            "Upgrade: websocket",
            "Expect: 100-continue ",
            "X-Y: Content-Length: 7",
            "Trailer: X",
        ]
    ),
    st.tuples(st.sampled_from(["Connection", "CONNECTION", "Proxy-Connection", "Keep-Alive", "Upgrade"]), _OPTIONS).map(
        ":".join
    ),
)
_METHODS = ["POST", "GET", "DELETE", "OPTIONS", "PUT", "CONNECT", "PRI", "SOURCE", "M-SEARCH", "QUERY"]


@pytest.mark.promise("gateway:no-smuggling")
@given(
    st.sampled_from(_METHODS),
    st.lists(_LINES, max_size=5),
    st.sampled_from([b"", b"abcd", b"4\r\nabcd\r\n0\r\n\r\n", b"0\r\n\r\n", b"abcdGET / HTTP/1.1\r\n\r\n"]),
)
def test_the_parser_ends_a_request_where_the_framing_does(method: str, lines: list[str], data: bytes) -> None:
    read = head(*lines, request=f"{method} /mcp HTTP/1.1")
    if isinstance(read, Fault):
        return
    framing = ChunkedFraming() if read.chunked else LengthFraming(read.length)
    reader = Reader()
    parser = httptools.HttpRequestParser(reader)
    parser.feed_data(read.composed(upgrade=False))
    assert not parser.should_upgrade()
    assert reader.ends == (1 if framing.done else 0)
    taken = framing.take(data)
    if isinstance(taken, Fault) or (framing.done and not taken):
        return
    parser.feed_data(data[:taken])
    assert reader.ends == (1 if framing.done else 0)
    if not read.chunked:
        assert reader.body == data[:taken]
    elif framing.done:
        assert reader.body == (b"" if data.startswith(b"0") else b"abcd")


def take_all(data: bytes, *, piece: int) -> tuple[ChunkedFraming, Fault | None, int]:
    framing, taken = ChunkedFraming(), 0
    for at in range(0, len(data), piece):
        count = framing.take(data[at : at + piece])
        if isinstance(count, Fault):
            return framing, count, taken
        taken += count
    return framing, None, taken


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize(
    "body",
    [
        b"2;a=b\r\n{}\r\n0\r\n\r\n",
        b"2 \r\n{}\r\n0\r\n\r\n",
        b"2\n{}\r\n0\r\n\r\n",
        b"22\n{}\r\n0\r\n\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"+2\r\n{}\r\n0\r\n\r\n",
        b"\r\n{}\r\n0\r\n\r\n",
        b"g\r\n{}\r\n0\r\n\r\n",
        b"000000002\r\n{}\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n{}",
        b"2\r\n{}\n0\r\n\r\n",
        b"2\r\n{}x\r\n0\r\n\r\n",
        b"1\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}\r\n0\r\nTrailer: x\r\n\r\n",
        b"2\r\n{}\r\n0\r\n\n",
        b"2\r{}\r\n0\r\n\r\n",
    ],
)
def test_chunks_have_one_reading_or_none(body: bytes) -> None:
    for piece in (1, 3, 1000):
        assert isinstance(take_all(body, piece=piece)[1], Fault), piece


def test_a_body_of_crumbs_is_not_read() -> None:
    fault = take_all(b"1\r\na\r\n" * (MAX_CHUNKS + 1), piece=5000)[1]
    assert fault is not None
    assert fault.status == 413


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.integers(1, 30), st.binary(max_size=20))
def test_a_body_in_chunks_ends_where_it_ends(chunks: list[bytes], piece: int, behind: bytes) -> None:
    body = b"".join(b"%X\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    framing, fault, taken = take_all(body + behind, piece=piece)
    assert (framing.done, fault, taken) == (True, None, len(body))


@given(st.integers(0, 50), st.binary(max_size=100))
def test_a_body_of_a_known_length_ends_there(length: int, data: bytes) -> None:
    framing = LengthFraming(length)
    assert framing.take(data) == min(length, len(data))
    assert framing.done is (len(data) >= length)


@pytest.mark.parametrize(
    "beginning", [b"G", b"GET /mcp HT", b"GET /mcp HTTP/1.1\r", b"GET /mcp HTTP/1.1\r\nHost: x\r\n"]
)
def test_a_beginning_may_still_become_a_request(beginning: bytes) -> None:
    assert not any(looks_wrong(beginning, known_good=known) for known in range(len(beginning)))


@pytest.mark.parametrize(
    "beginning", [b"\n", b"\r\n", b"GET\n", b"G\x00", b"\x16\x03", b"GET /mcp\r\n", b"a\rb", b"x\r\nGET / HTTP/1.1\r\n"]
)
def test_some_beginnings_never_become_one(beginning: bytes) -> None:
    assert looks_wrong(beginning)
    assert any(looks_wrong(beginning[: at + 1], known_good=at) for at in range(len(beginning)))
