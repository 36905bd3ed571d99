"""How the public port starts and stops, and how long it waits for whom."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import time
from functools import partial

import anyio
import anyio.abc
import anyio.to_thread
import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.server import HttpTimeouts, is_loopback, listen_on, serve_http, serve_listener
from browser_shell.http1.framing import MAX_HEAD_BYTES, Head
from support.fakes import a_pipeline
from support.loopback_server import serving
from support.raw_http import exchange
from support.wire import BOTH, body

HASTY = HttpTimeouts(head_seconds=0.3, body_seconds=0.3, idle_seconds=0.3, stuck_write_seconds=0.3, linger_seconds=0.2)


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("nobody calls")


def ignore(port: int) -> None:
    pass


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


async def answers(port: int, data: bytes) -> list[int]:
    return [answer.status for answer in await anyio.to_thread.run_sync(exchange, port, data)]


async def test_a_port_that_is_taken_stops_the_start_and_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationInvalid, match=str(port)):
            await serve_http(nothing, host="127.0.0.1", port=port, on_ready=ignore)


async def test_a_host_that_is_no_address_stops_the_start() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"not\.an\.address"):
        await serve_http(nothing, host="not.an.address", port=0, on_ready=ignore)


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("localhost", False)],
)
def test_only_a_loopback_address_is_for_this_machine_alone(host: str, local: bool) -> None:
    assert is_loopback(host) is local


async def test_signals_stay_with_the_program() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with serving(a_pipeline()):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_stopping_an_idle_server_is_quick() -> None:
    async with serving(a_pipeline()):
        started = anyio.current_time()
    assert anyio.current_time() - started < 1


HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.promise("gateway:slow-clients-are-cut")
@pytest.mark.parametrize(
    ("begun", "statuses"),
    [
        (b"", []),
        (b"POST /mcp HT", [408]),
        (HEAD, [408]),
        (HEAD + b"Content-Length: 10\r\n\r\n", [408]),
        (HEAD + b"Content-Length: 10\r\n\r\n{", [408]),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", [408]),
    ],
)
async def test_who_takes_too_long_to_say_what_he_wants_is_cut(begun: bytes, statuses: list[int]) -> None:
    async with serving(a_pipeline(), patience=HASTY) as address:
        started = anyio.current_time()
        assert await answers(port_of(address), begun) == statuses
        assert anyio.current_time() - started < 3


async def test_a_connection_may_idle_between_requests_and_not_for_ever() -> None:
    async with serving(a_pipeline(), patience=HASTY) as address:
        stream = await anyio.connect_tcp("127.0.0.1", port_of(address))
        async with stream:
            for _ in range(2):
                await stream.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await stream.receive()).startswith(b"HTTP/1.1 406")
            with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
                await stream.receive()


GET = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("offer", [b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n", b""])
async def test_who_offers_another_protocol_is_answered_in_this_one_again_and_again(offer: bytes) -> None:
    call = HEAD + b"Accept: application/json, text/event-stream\r\n" + offer + b"Content-Length: 2\r\n\r\n{}"
    async with (
        serving(a_pipeline()) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        for request, status in ((call, 400), (GET.replace(b"\r\n\r\n", b"\r\n" + offer + b"\r\n"), 406), (call, 400)):
            await stream.send(request)
            with anyio.fail_after(5):
                answer = await stream.receive()
                while b"\r\n\r\n" not in answer or answer.endswith(b"\r\n\r\n"):
                    answer += await stream.receive()
            assert answer.startswith(b"HTTP/1.1 %d" % status), answer


SMUGGLED = b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "beginning",
    [
        b"CONNECT /mcp HTTP/1.1\r\n",
        b"POST /mcp HTTP/1.1\r\nProxy-Connection: Upgrade\r\nUpgrade: x\r\n",
        b"POST /mcp HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n",
        b"POST /mcp HTTP/1.1\r\nConnection: x,\tupgrade\t\r\nconnection: close\r\nUpgrade: websocket\r\n",
    ],
)
async def test_a_body_is_never_a_second_request(beginning: bytes, at_once: bool) -> None:
    request = beginning + HEAD.partition(b"\r\n")[2] + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED)
    async with (
        serving(a_pipeline(), patience=HASTY) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        assert statuses(await said(stream, [request + SMUGGLED] if at_once else [request, SMUGGLED])) in ([400], [501])


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("handed_on", "told"),
    [
        (b"CONNECT /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n", {400}),
        (b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", {400}),
        (GET + GET, {400}),
        (GET, {400, 406}),
    ],
)
async def test_should_the_parser_read_another_request_than_we_did_it_goes_no_further(
    handed_on: bytes, told: set[int], at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Head, "composed", lambda head, upgrade: handed_on)
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED)
    async with (
        serving(a_pipeline(), patience=HASTY) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        answered = statuses(await said(stream, [request + SMUGGLED] if at_once else [request, SMUGGLED]))
        assert len(answered) == 1
        assert answered[0] in told


async def test_a_second_request_that_the_parser_refuses_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        serving(a_pipeline(), patience=HASTY) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        await stream.send(GET)
        assert statuses(await stream.receive()) == [406]
        monkeypatch.setattr(Head, "composed", lambda head, upgrade: b"BREW /mcp HTTP/1.1\r\n\r\n")
        assert statuses(await said(stream, [GET])) == [400]


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


async def said(stream: anyio.abc.SocketStream, parts: list[bytes]) -> bytes:
    """All that the server says until it closes the connection."""
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
async def test_whoever_goes_on_after_an_early_answer_and_a_whole_body_is_cut(head: bytes, rest: bytes) -> None:
    async with (
        serving(a_pipeline(), patience=HASTY) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        await stream.send(b"POST /nope HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n")
        assert statuses(await stream.receive()) == [403]
        assert statuses(await said(stream, [rest])) == []


@pytest.mark.parametrize("method", [b"BREW", b"CONNECT"])
async def test_a_second_request_that_is_no_good_is_told_so(method: bytes) -> None:
    async with (
        serving(a_pipeline(), patience=HASTY) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        assert statuses(await said(stream, [GET, method + b" /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"])) == [406, 501]


async def test_space_behind_a_value_is_not_part_of_it() -> None:
    request = b"GET /mcp HTTP/1.1\r\nHost: localhost \t\r\nOrigin: http://localhost \r\n\r\n"
    async with serving(a_pipeline()) as address:
        assert await answers(port_of(address), request + b"") == [406]


@pytest.mark.promise("gateway:slow-clients-are-cut")
async def test_a_second_request_must_arrive_in_time_too() -> None:
    async with (
        serving(a_pipeline(), patience=HttpTimeouts(head_seconds=0.3)) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        await stream.send(GET)
        assert (await stream.receive()).startswith(b"HTTP/1.1 406")
        await stream.send(GET[:20])
        with anyio.fail_after(5):
            assert (await stream.receive()).startswith(b"HTTP/1.1 408")


async def test_a_connection_may_not_idle_for_ever_after_a_body_that_nobody_wanted() -> None:
    size = 5_000_000
    async with (
        serving(a_pipeline(), patience=HttpTimeouts(idle_seconds=0.3)) as address,
        await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream,
    ):
        await stream.send(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        assert (await stream.receive()).startswith(b"HTTP/1.1 413")
        await stream.send(bytes(size))
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await stream.receive()


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n"])
async def test_a_head_that_is_too_large_is_not_kept(ending: bytes) -> None:
    large = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * MAX_HEAD_BYTES + ending
    async with serving(a_pipeline()) as address:
        started = anyio.current_time()
        assert await answers(port_of(address), large) == [431]
        assert anyio.current_time() - started < 3


async def test_who_does_not_read_the_answer_is_cut() -> None:
    sent = anyio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await _received_now(receive)) is None:
            await send({"type": "http.response.body", "body": bytes(1024 * 1024), "more_body": True})
        sent.set()

    ports: list[int] = []
    async with anyio.create_task_group() as tasks:
        ready = anyio.Event()

        def announce(port: int) -> None:
            ports.append(port)
            ready.set()

        async def serve() -> None:
            await serve_http(endless, host="127.0.0.1", port=0, on_ready=announce, patience=HASTY)

        tasks.start_soon(serve)
        await ready.wait()
        async with await anyio.connect_tcp("127.0.0.1", ports[0]) as stream:
            await stream.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with anyio.fail_after(5):
                await sent.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.promise("gateway:slow-clients-are-cut")
async def test_who_does_not_read_the_end_of_the_last_answer_is_cut_too() -> None:
    """It is too small to fill the server's buffer, and after it nothing more is waited for."""
    body = bytes(48 * 1024)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            length = [(b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": length})
            await send({"type": "http.response.body", "body": body})
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    listener, ready = listen_on("127.0.0.1", 0), anyio.Event()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    port = listener.getsockname()[1]

    def read_late() -> int:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            time.sleep(5 * HASTY.stuck_write_seconds)
            client.settimeout(5)
            count = 0
            with contextlib.suppress(ConnectionResetError):
                while part := client.recv(65536):
                    count += len(part)
            return count

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve_listener, answer, listener, on_ready=lambda _: ready.set(), patience=HASTY))
        await ready.wait()
        assert await anyio.to_thread.run_sync(read_late) < len(body)
        tasks.cancel_scope.cancel()


async def _received_now(receive: Receive) -> object:
    message: object = None
    with anyio.move_on_after(0.01):
        message = await receive()
        if isinstance(message, dict) and message["type"] == "http.request":
            return None
    return message


@pytest.mark.promise("gateway:idle-sockets-keep-nobody-out")
async def test_a_crowd_of_idle_sockets_keeps_nobody_out() -> None:
    async with (
        serving(a_pipeline(), patience=HttpTimeouts(max_connections=20)) as address,
        contextlib.AsyncExitStack() as held,
    ):
        for _ in range(60):
            await held.enter_async_context(await anyio.connect_tcp("127.0.0.1", port_of(address)))
        async with httpx2.AsyncClient(timeout=5) as http:
            response = await http.post(f"{address}/mcp", headers=BOTH, json=body("tools/list"))
        assert response.status_code == 200


async def test_too_many_that_all_wait_for_an_answer_are_told_so() -> None:
    begun = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    async with (
        serving(a_pipeline(), patience=HttpTimeouts(max_connections=3)) as address,
        contextlib.AsyncExitStack() as held,
    ):
        for _ in range(3):
            stream = await held.enter_async_context(await anyio.connect_tcp("127.0.0.1", port_of(address)))
            await stream.send(begun)
        await anyio.sleep(0.2)  # long enough for the server to have read the heads
        assert await answers(port_of(address), b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n") == [503]


@pytest.mark.promise("gateway:no-smuggling")
async def test_a_second_request_before_the_first_is_answered_gets_no_answer() -> None:
    one = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with serving(a_pipeline()) as address, await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream:
        await stream.send(one + one)
        assert (await stream.receive()).count(b"HTTP/1.1 ") == 1
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await stream.receive()


async def test_a_refused_client_that_still_writes_gets_to_read_why() -> None:
    large = HEAD + b"Content-Length: 20000000\r\n\r\n" + b"x" * 20_000_000
    odd = HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + b"x" * 20_000_000
    async with serving(a_pipeline()) as address:
        assert await answers(port_of(address), large) == [413]
        async with await anyio.connect_tcp("127.0.0.1", port_of(address)) as stream:
            await stream.send(odd)  # to the end, without a reset
            assert (await stream.receive()).startswith(b"HTTP/1.1 400")


async def test_a_body_that_is_announced_too_large_is_not_waited_for() -> None:
    async with serving(a_pipeline()) as address:
        started = anyio.current_time()
        assert await answers(port_of(address), HEAD + b"Content-Length: 10000000000\r\n\r\n") == [413]
        assert anyio.current_time() - started < 3


async def test_a_refused_client_that_never_stops_writing_is_cut() -> None:
    async with serving(a_pipeline()) as address:
        stream = await anyio.connect_tcp("127.0.0.1", port_of(address))
        async with stream:
            await stream.send(HEAD + b"Content-Length: 900000000000\r\n\r\n")
            with anyio.fail_after(20), pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):
                await _write_for_ever(stream)


async def _write_for_ever(stream: anyio.abc.SocketStream) -> None:
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
async def test_what_is_not_http_is_told_so_at_once(first_bytes: bytes) -> None:
    async with serving(a_pipeline()) as address:
        started = anyio.current_time()
        assert await answers(port_of(address), first_bytes) == [400]
        assert anyio.current_time() - started < 3
