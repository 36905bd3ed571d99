"""One connection: strict parsing, timeouts, refusals and the limit on connections."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.to_thread
import httptools
import httpx2
import pytest
from anyio.abc import SocketStream
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from browser_shell.http import connection
from browser_shell.http.connection import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_TARGET_BYTES,
    HttpTimeouts,
    check_public_request,
    write_clean_head,
)
from browser_shell.http.server import listen_on, serve_listener
from browser_shell.http1.body import LAST_CHUNK, BodyReader, encode_chunk
from browser_shell.http1.heads import Framing, MessageInvalid, Request, parse_request
from support.fakes import a_pipeline
from support.loopback_server import serving
from support.raw_http import exchange
from support.wire import BOTH, body

SHORT = HttpTimeouts(
    head_seconds=0.3, body_seconds=0.3, idle_seconds=0.3, blocked_write_seconds=0.3, linger_seconds=0.2
)


@asynccontextmanager
async def serving_port(timeouts: HttpTimeouts | None = None) -> AsyncIterator[int]:
    async with serving(a_pipeline(), timeouts=timeouts) as address:
        yield int(address.rpartition(":")[2])


@asynccontextmanager
async def connected(timeouts: HttpTimeouts | None = None) -> AsyncIterator[SocketStream]:
    """Run a server and open a connection to it."""
    async with serving_port(timeouts) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        yield stream


async def answers(port: int, data: bytes) -> list[int]:
    return [answer.status for answer in await anyio.to_thread.run_sync(exchange, port, data)]


def public_request(*lines: str, request_line: str = "POST /mcp HTTP/1.1") -> Request:
    """Parse a request and apply the limits of the listener. Raises: MessageInvalid."""
    parsed = parse_request("\r\n".join([request_line, "Host: localhost", *lines]).encode("latin-1"))
    check_public_request(parsed)
    return parsed


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /mcp HTTP/1.1", 200),
        ("OPTIONS /mcp HTTP/1.1", 200),
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
        (f"GET /{'a' * (MAX_TARGET_BYTES - 1)} HTTP/1.1", 200),
        (f"GET /{'a' * MAX_TARGET_BYTES} HTTP/1.1", 414),
    ],
)
def test_listener_serves_known_methods_on_paths(request_line: str, status: int) -> None:
    if status == 200:
        public_request(request_line=request_line)
        return
    with pytest.raises(MessageInvalid) as refused:
        public_request(request_line=request_line)
    assert refused.value.status == status


def test_too_many_headers_are_refused() -> None:
    lines = [f"X{number}: v" for number in range(MAX_HEADERS)]
    public_request(*lines[1:])
    with pytest.raises(MessageInvalid) as refused:
        public_request(*lines)
    assert refused.value.status == 431


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize(
    ("line", "cleaned"),
    [
        ("Connection: Upgrade, HTTP2-Settings", "Connection: HTTP2-Settings"),
        ("connection: close ,\tUPGRADE\t", "connection: close"),
        ("CONNECTION:upgrade", "CONNECTION: "),
        ("Connection: keep-alive, upgraded", "Connection: keep-alive, upgraded"),
        ("X-Connection: upgrade", "X-Connection: upgrade"),
        ("X-Spaces:   a  b \t ", "X-Spaces: a  b"),
    ],
)
def test_clean_head_offers_no_other_protocol(line: str, cleaned: str) -> None:
    assert write_clean_head(public_request(line, "Upgrade: h2c"), keep_upgrade=False) == (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{cleaned}\r\nUpgrade: h2c\r\n\r\n".encode()
    )


def test_clean_head_has_no_proxy_connection() -> None:
    cleaned = write_clean_head(public_request("Proxy-Connection: upgrade", "X: y"), keep_upgrade=False)
    assert cleaned == b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\r\n"


class ParserCallbacks:
    """Results of the parser that uvicorn uses."""

    def __init__(self) -> None:
        self.body = b""
        self.completed = 0

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.completed += 1


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
def test_uvicorns_parser_ends_each_request_where_http1_does(method: str, lines: list[str], data: bytes) -> None:
    try:
        request = public_request(*lines, request_line=f"{method} /mcp HTTP/1.1")
        reader = BodyReader(request.framing, request.length)
        was_complete = reader.complete
        content = reader.feed(data)
    except MessageInvalid:
        return
    callbacks = ParserCallbacks()
    parser = httptools.HttpRequestParser(callbacks)
    parser.feed_data(write_clean_head(request, keep_upgrade=False))
    assert not parser.should_upgrade()
    assert callbacks.completed == (1 if was_complete else 0)
    if request.framing is Framing.CHUNKED:
        parser.feed_data(encode_chunk(content) + (LAST_CHUNK if reader.complete else b""))
    elif content:
        parser.feed_data(content)
    assert callbacks.completed == (1 if reader.complete else 0)
    assert callbacks.body == content


GET = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.promise("gateway:slow-clients-are-cut")
@pytest.mark.parametrize(
    ("start", "statuses"),
    [
        (b"", []),
        (b"POST /mcp HT", [408]),
        (HEAD, [408]),
        (HEAD + b"Content-Length: 10\r\n\r\n", [408]),
        (HEAD + b"Content-Length: 10\r\n\r\n{", [408]),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", [408]),
    ],
)
async def test_request_that_arrives_too_slowly_is_refused(start: bytes, statuses: list[int]) -> None:
    async with serving_port(SHORT) as port:
        started = anyio.current_time()
        assert await answers(port, start) == statuses
        assert anyio.current_time() - started < 3


async def test_idle_connection_is_closed_at_its_timeout() -> None:
    async with connected(SHORT) as stream:
        for _ in range(2):
            await stream.send(GET)
            assert (await stream.receive()).startswith(b"HTTP/1.1 406")
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await stream.receive()


@pytest.mark.parametrize("offer", [b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n", b""])
async def test_offer_of_another_protocol_is_ignored_and_the_connection_stays_usable(offer: bytes) -> None:
    call = HEAD + b"Accept: application/json, text/event-stream\r\n" + offer + b"Content-Length: 2\r\n\r\n{}"
    async with connected() as stream:
        for request, status in ((call, 400), (GET.replace(b"\r\n\r\n", b"\r\n" + offer + b"\r\n"), 406), (call, 400)):
            await stream.send(request)
            with anyio.fail_after(5):
                answer = await stream.receive()
                while b"\r\n\r\n" not in answer or answer.endswith(b"\r\n\r\n"):
                    answer += await stream.receive()
            assert answer.startswith(b"HTTP/1.1 %d" % status), answer


SMUGGLED = b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize("in_one_segment", [True, False])
@pytest.mark.parametrize(
    "beginning",
    [
        b"CONNECT /mcp HTTP/1.1\r\n",
        b"POST /mcp HTTP/1.1\r\nProxy-Connection: Upgrade\r\nUpgrade: x\r\n",
        b"POST /mcp HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n",
        b"POST /mcp HTTP/1.1\r\nConnection: x,\tupgrade\t\r\nconnection: close\r\nUpgrade: websocket\r\n",
    ],
)
async def test_body_is_never_taken_for_a_second_request(beginning: bytes, in_one_segment: bool) -> None:
    request = beginning + HEAD.partition(b"\r\n")[2] + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED)
    async with connected(SHORT) as stream:
        assert statuses(
            await send_and_read(stream, [request + SMUGGLED] if in_one_segment else [request, SMUGGLED])
        ) in ([400], [501])


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize("in_one_segment", [True, False])
@pytest.mark.parametrize(
    ("parsed", "expected"),
    [
        (b"CONNECT /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n", {400}),
        (b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", {400}),
        (GET + GET, {400}),
        (GET, {400, 406}),
    ],
)
async def test_request_that_uvicorn_parses_differently_is_refused(
    parsed: bytes, expected: set[int], in_one_segment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "write_clean_head", lambda request, keep_upgrade: parsed)
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED)
    async with connected(SHORT) as stream:
        answered = statuses(
            await send_and_read(stream, [request + SMUGGLED] if in_one_segment else [request, SMUGGLED])
        )
        assert len(answered) == 1
        assert answered[0] in expected


async def test_second_request_that_uvicorn_refuses_gets_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(SHORT) as stream:
        await stream.send(GET)
        assert statuses(await stream.receive()) == [406]
        monkeypatch.setattr(connection, "write_clean_head", lambda request, keep_upgrade: b"BREW /mcp HTTP/1.1\r\n\r\n")
        assert statuses(await send_and_read(stream, [GET])) == [400]


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


async def send_and_read(stream: SocketStream, parts: list[bytes]) -> bytes:
    """Send the parts and return everything received until the server closes the connection."""
    answer = b""
    with anyio.fail_after(5), contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        for part in parts:
            await stream.send(part)
            with anyio.move_on_after(0.1):
                while True:
                    answer += await stream.receive()
        while True:
            answer += await stream.receive()
    return answer


@pytest.mark.promise("gateway:slow-clients-are-cut")
@pytest.mark.parametrize(
    ("head", "rest"),
    [
        (b"Content-Length: 10\r\n", b"0123456789X"),
        (b"Transfer-Encoding: chunked\r\n", b"1\r\na\r\n0\r\n\r\nX"),
    ],
)
async def test_bytes_after_the_body_of_an_answered_request_close_the_connection(head: bytes, rest: bytes) -> None:
    async with connected(SHORT) as stream:
        await stream.send(b"POST /nope HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n")
        assert statuses(await stream.receive()) == [403]
        assert statuses(await send_and_read(stream, [rest])) == []


@pytest.mark.parametrize("method", [b"BREW", b"CONNECT"])
async def test_second_request_with_an_unknown_method_gets_a_response(method: bytes) -> None:
    async with connected(SHORT) as stream:
        assert statuses(await send_and_read(stream, [GET, method + b" /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"])) == [
            406,
            501,
        ]


async def test_trailing_space_is_not_part_of_a_header_value() -> None:
    request = b"GET /mcp HTTP/1.1\r\nHost: localhost \t\r\nOrigin: http://localhost \r\n\r\n"
    async with serving_port() as port:
        assert await answers(port, request + b"") == [406]


@pytest.mark.promise("gateway:slow-clients-are-cut")
async def test_second_request_that_arrives_too_slowly_is_refused() -> None:
    async with connected(HttpTimeouts(head_seconds=0.3)) as stream:
        await stream.send(GET)
        assert (await stream.receive()).startswith(b"HTTP/1.1 406")
        await stream.send(GET[:20])
        with anyio.fail_after(5):
            assert (await stream.receive()).startswith(b"HTTP/1.1 408")


async def test_connection_is_closed_when_idle_after_a_discarded_body() -> None:
    size = 5_000_000
    async with connected(HttpTimeouts(idle_seconds=0.3)) as stream:
        await stream.send(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        assert (await stream.receive()).startswith(b"HTTP/1.1 413")
        await stream.send(bytes(size))
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await stream.receive()


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n"])
async def test_head_above_the_limit_is_refused_in_one_segment(ending: bytes) -> None:
    large = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * MAX_HEAD_BYTES + ending
    async with serving_port() as port:
        started = anyio.current_time()
        assert await answers(port, large) == [431]
        assert anyio.current_time() - started < 3


@asynccontextmanager
async def serving_app(app: ASGIApp, *, send_buffer_bytes: int | None = None) -> AsyncIterator[int]:
    """Run an application on the listener, with short timeouts; yield the port."""

    async def with_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
        await (Router() if scope["type"] == "lifespan" else app)(scope, receive, send)

    listener, ready = listen_on("127.0.0.1", 0), anyio.Event()
    if send_buffer_bytes is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    async with anyio.create_task_group() as tasks:
        serve = partial(serve_listener, with_lifespan, listener, on_ready=lambda _: ready.set(), timeouts=SHORT)
        tasks.start_soon(serve)
        await ready.wait()
        yield listener.getsockname()[1]
        tasks.cancel_scope.cancel()


async def test_client_that_does_not_read_its_response_is_disconnected() -> None:
    disconnected = anyio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await _received_now(receive)) is None:
            await send({"type": "http.response.body", "body": bytes(1024 * 1024), "more_body": True})
        disconnected.set()

    async with serving_app(endless) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(GET)
        with anyio.fail_after(5):
            await disconnected.wait()


@pytest.mark.promise("gateway:slow-clients-are-cut")
async def test_client_that_does_not_read_the_end_of_its_last_response_is_disconnected() -> None:
    """The response is too small to fill the server's buffer, and no further request is expected."""
    content = bytes(48 * 1024)

    def read_late(port: int) -> int:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            time.sleep(5 * SHORT.blocked_write_seconds)
            client.settimeout(5)
            count = 0
            with contextlib.suppress(ConnectionResetError):
                while part := client.recv(65536):
                    count += len(part)
            return count

    async with serving_app(Response(content), send_buffer_bytes=4096) as port:
        assert await anyio.to_thread.run_sync(read_late, port) < len(content)


async def _received_now(receive: Receive) -> object:
    message: object = None
    with anyio.move_on_after(0.01):
        message = await receive()
        if isinstance(message, dict) and message["type"] == "http.request":
            return None
    return message


@pytest.mark.promise("gateway:idle-connections-do-not-block-others")
async def test_idle_connections_give_way_to_new_ones() -> None:
    async with (
        serving_port(HttpTimeouts(max_connections=20)) as port,
        contextlib.AsyncExitStack() as streams,
    ):
        for _ in range(60):
            await streams.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
        async with httpx2.AsyncClient(timeout=5) as http:
            response = await http.post(f"http://127.0.0.1:{port}/mcp", headers=BOTH, json=body("tools/list"))
        assert response.status_code == 200


async def test_connection_above_the_limit_is_refused_when_all_are_busy() -> None:
    start = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    async with (
        serving_port(HttpTimeouts(max_connections=3)) as port,
        contextlib.AsyncExitStack() as streams,
    ):
        for _ in range(3):
            stream = await streams.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            await stream.send(start)
        await anyio.sleep(0.2)  # long enough for the server to have read the heads
        assert await answers(port, GET) == [503]


@pytest.mark.promise("gateway:no-smuggling")
async def test_pipelined_request_gets_no_response() -> None:
    async with connected() as stream:
        await stream.send(GET + GET)
        assert (await stream.receive()).count(b"HTTP/1.1 ") == 1
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await stream.receive()


async def test_refused_client_that_still_writes_can_read_the_refusal() -> None:
    large = HEAD + b"Content-Length: 20000000\r\n\r\n" + b"x" * 20_000_000
    odd = HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + b"x" * 20_000_000
    async with serving_port() as port:
        assert await answers(port, large) == [413]
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(odd)  # to the end, without a reset
            assert (await stream.receive()).startswith(b"HTTP/1.1 400")


async def test_body_with_too_large_a_length_is_refused_in_one_segment() -> None:
    async with serving_port() as port:
        started = anyio.current_time()
        assert await answers(port, HEAD + b"Content-Length: 10000000000\r\n\r\n") == [413]
        assert anyio.current_time() - started < 3


async def test_refused_client_that_never_stops_writing_is_disconnected() -> None:
    async with connected() as stream:
        await stream.send(HEAD + b"Content-Length: 900000000000\r\n\r\n")
        with anyio.fail_after(20), pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):
            await _write_forever(stream)


async def _write_forever(stream: SocketStream) -> None:
    while True:
        await stream.send(bytes(1024 * 1024))


@pytest.mark.parametrize(
    "first_bytes",
    [
        bytes.fromhex("16030100f6010000f20303"),
        b"SSH-2.0-x\r\n",
        b"GET /mcp\r\n",
        b"\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
    ],
)
async def test_input_other_than_http_is_refused_in_one_segment(first_bytes: bytes) -> None:
    async with serving_port() as port:
        started = anyio.current_time()
        assert await answers(port, first_bytes) == [400]
        assert anyio.current_time() - started < 3
