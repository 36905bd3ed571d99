"""Plain HTTP through the proxy, between a raw client and a scripted origin."""

from __future__ import annotations

import anyio
import pytest

from support.egress import (
    OK,
    WAIT_SECONDS,
    OriginConnection,
    body_of,
    get,
    proxied,
    read_all,
    read_until,
    responding,
    responding_once,
)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"2\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\nok", b"2\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.0 200 OK\r\n\r\nok", b"2\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK, b"ok"),
    ],
    ids=["length", "chunked", "closed", "http10", "204", "304", "1xx"],
)
async def test_response_body_of_any_framing_arrives_complete(answer: bytes, body: bytes) -> None:
    async with proxied(responding_once(answer)) as (_, proxy):
        received = await proxy.exchange(get())
    assert received.startswith(b"HTTP/1.1 ")
    assert body_of(received) == body


async def test_response_to_head_has_a_length_and_no_body() -> None:
    async with proxied(responding(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", OK)) as (origin, proxy):
        received = await proxy.exchange(
            get(end=False).replace(b"GET", b"HEAD") + get("/next"),
        )
    assert b"Content-Length: 5000\r\n" in received
    assert received.endswith(b"\r\n\r\nok")
    assert origin.connections == 1


async def test_large_bodies_are_unchanged_in_both_directions() -> None:
    payload = bytes(range(256)) * 16_384  # 4 MiB

    async def echo(connection: OriginConnection) -> None:
        head = await connection.receive_head()
        while len(body_of(head)) < len(payload):
            head += await connection.receive()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(payload) + body_of(head))

    request = b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nConnection: close\r\n"
    async with proxied(echo) as (_, proxy), await proxy.connect() as client:
        received: list[bytes] = []

        async def read() -> None:
            received.append(await read_all(client))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await client.send(request + b"Content-Length: %d\r\n\r\n" % len(payload) + payload)
    assert body_of(received[0]) == payload


async def test_chunked_upload_is_forwarded_in_chunks() -> None:
    async def behave(connection: OriginConnection) -> None:
        await connection.until(b"0\r\n\r\n")
        await connection.send(OK)

    request = (
        b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nConnection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n0\r\nTrailer: x\r\n\r\n"
    )
    async with proxied(behave) as (origin, proxy):
        assert (await proxy.exchange(request)).endswith(b"ok")
    head, _, body = bytes(origin.received).partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    assert b"content-length" not in head.lower()
    assert body == b"3\r\nabc\r\n0\r\n\r\n"


async def test_100_continue_is_forwarded_to_a_client_that_expects_it() -> None:
    async def behave(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await connection.until(b"abc")
        await connection.send(OK)

    head = (
        b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nConnection: close\r\n"
        b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    )
    async with proxied(behave) as (_, proxy), await proxy.connect() as client:
        await client.send(head)
        await read_until(client, b"100")
        await client.send(b"abc")
        assert (await read_all(client)).endswith(b"ok")


async def test_response_before_the_end_of_the_upload_is_forwarded() -> None:
    async def behave(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        await connection.until(b"never sent")

    head = b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nContent-Length: 1000000\r\n\r\nabc"
    async with proxied(behave) as (_, proxy):
        assert body_of(await proxy.exchange(head)) == b"big"


async def test_both_connections_are_reused_for_the_next_request() -> None:
    async with proxied(responding(OK, OK, OK)) as (origin, proxy), await proxy.connect() as client:
        for number in range(3):
            await client.send(get(f"/{number}", end=False))
            await read_until(client, b"\r\n\r\nok")
    assert origin.connections == 1
    assert proxy.audit.kinds == ["EGRESS_CONNECT"]
    assert [line for line in origin.received.split(b"\r\n") if line.startswith(b"GET")] == [
        b"GET /0 HTTP/1.1",
        b"GET /1 HTTP/1.1",
        b"GET /2 HTTP/1.1",
    ]


async def test_pipelined_requests_are_answered_in_order() -> None:
    async def behave(connection: OriginConnection) -> None:
        answered = 0
        while True:
            while origin.received.count(b"\r\n\r\n") <= answered:
                await connection.receive()
            answered += 1
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n#%d" % answered)

    async with proxied(behave) as (origin, proxy):
        received = await proxy.exchange(get("/1", end=False) + get("/2", end=False) + get("/3"))
    assert received.find(b"#1") < received.find(b"#2") < received.find(b"#3")
    assert received.count(b"200 OK") == 3


async def test_request_to_another_origin_gets_its_own_decision_and_connection() -> None:
    async with proxied(responding(OK, OK)) as (origin, proxy), await proxy.connect() as client:
        await client.send(get(end=False))
        await read_until(client, b"ok")
        await client.send(get(end=False, host="other.example"))
        await read_until(client, b"ok")
        await client.send(get(host="10.0.0.1"))
        assert b"403" in await read_all(client)
    assert origin.connections == 2
    assert [record.host for record in proxy.audit.records] == ["page.example:80", "other.example:80", "10.0.0.1:80"]
    assert proxy.denied_rules() == ["address.private"]


@pytest.mark.promise("egress:target-decides")
@pytest.mark.parametrize(
    ("target", "host_header", "expected"),
    [
        ("page.example", "evil.example", b"page.example"),
        ("page.example:81", "10.0.0.1", b"page.example:81"),
        ("PAGE.example:80", "x", b"page.example"),
        ("page.example.", "x", b"page.example."),
    ],
)
async def test_host_header_is_taken_from_the_target(target: str, host_header: str, expected: bytes) -> None:
    raw = f"GET http://{target}/ HTTP/1.1\r\nHost: {host_header}\r\nConnection: close\r\n\r\n".encode()
    async with proxied(responding(OK)) as (origin, proxy):
        await proxy.exchange(raw)
    assert origin.connections == 1
    assert [line for line in origin.received.split(b"\r\n") if line.lower().startswith(b"host:")] == [
        b"Host: " + expected
    ]
    assert origin.received.startswith(b"GET / HTTP/1.1\r\nHost: ")


async def test_host_header_does_not_allow_a_denied_target() -> None:
    async with proxied(responding(OK)) as (origin, proxy):
        received = await proxy.exchange(
            f"GET http://127.0.0.1:{origin.port}/ HTTP/1.1\r\nHost: page.example\r\n\r\n".encode()
        )
    assert b"403" in received
    assert b"address.loopback" in received
    assert origin.connections == 0


async def test_hop_by_hop_headers_are_dropped() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x-server\r\nX-Server: 1\r\nKeep-Alive: 5\r\n\r\nok"
    request = get(
        "/",
        "Proxy-Authorization: Basic c2VjcmV0",
        "Proxy-Connection: keep-alive",
        "TE: trailers",
        "X-Hop: 1",
        "X-Kept: 2",
        "Connection: x-hop, host, content-length",
    )
    async with proxied(responding(answer)) as (origin, proxy):
        received = await proxy.exchange(request)
    sent = bytes(origin.received).lower()
    for dropped in (b"proxy-", b"secret", b"x-hop", b"\r\nte:", b"connection"):
        assert dropped not in sent
    assert b"x-kept: 2" in sent
    assert b"host: page.example" in sent
    assert b"x-server" not in received.lower()
    assert b"keep-alive" not in received.lower()


async def test_upgrade_of_a_plain_request_is_dropped() -> None:
    async with proxied(responding(OK)) as (origin, proxy):
        request = get("/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", end=False)
        async with await proxy.connect() as client:
            await client.send(request)
            assert b"200 OK" in await read_until(client, b"ok")
    assert b"upgrade" not in bytes(origin.received).lower()


async def test_unrequested_protocol_switch_closes_the_connection() -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw bytes"
    async with proxied(responding(answer)) as (_, proxy):
        assert await proxy.exchange(get("/", "Upgrade: x")) == b""


async def test_truncated_body_does_not_look_complete() -> None:
    answers = {
        "length": b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhalf",
        "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf",
    }
    for name, answer in answers.items():
        async with proxied(responding_once(answer)) as (_, proxy):
            received = await proxy.exchange(get(end=False))
        assert b"half" in received, name
        assert not received.endswith(b"0\r\n\r\n"), name
        assert (b"Content-Length: 1000000" in received) == (name == "length")


async def test_small_truncated_body_is_not_forwarded() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
    async with proxied(responding_once(answer)) as (_, proxy):
        assert await proxy.exchange(get(end=False)) == b""


async def test_small_body_arrives_with_its_head() -> None:
    async def behave(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        await anyio.sleep(0.2)
        await connection.send(b"ok")

    async with proxied(behave) as (_, proxy), await proxy.connect() as client:
        await client.send(get(end=False))
        head = await client.receive()
        assert head.startswith(b"HTTP/1.1 200 OK")
        with anyio.fail_after(0.1):
            assert head.endswith(b"ok") or await client.receive() == b"ok"


async def test_slow_small_body_is_forwarded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.forward._SMALL_BODY_SECONDS", 0.01)
    arrived = anyio.Event()

    async def behave(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha")
        await arrived.wait()
        await connection.send(b"lf")

    async with proxied(behave) as (_, proxy), await proxy.connect() as client:
        await client.send(get(end=False))
        await read_until(client, b"ha")
        arrived.set()
        assert await read_until(client, b"lf") == b"lf"


async def test_origin_that_sends_bytes_after_its_response_gets_no_second_request() -> None:
    smuggled = OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    async with proxied(responding(smuggled, OK)) as (origin, proxy), await proxy.connect() as client:
        await client.send(get("/1", end=False))
        assert b"evil" not in await read_all(client)
    assert origin.received.count(b"GET") == 1


async def test_malformed_chunks_close_the_connection_without_a_last_chunk() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokX\r\n0\r\n\r\n"
    async with proxied(responding(answer)) as (_, proxy):
        assert not (await proxy.exchange(get(end=False))).endswith(b"0\r\n\r\n")


async def test_transfer_encoding_overrides_content_length_in_a_response() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    async with proxied(responding(answer)) as (_, proxy):
        received = await proxy.exchange(get())
    assert b"content-length" not in received.lower()
    assert body_of(received) == b"2\r\nok\r\n0\r\n\r\n"


async def test_response_lines_may_end_in_lf_alone() -> None:
    answer = b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"
    async with proxied(responding(answer)) as (_, proxy):
        assert body_of(await proxy.exchange(get())) == b"ok"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000,
    ],
)
async def test_incomplete_or_invalid_response_head_is_not_forwarded(answer: bytes) -> None:
    async with proxied(responding_once(answer)) as (_, proxy):
        assert await proxy.exchange(get()) == b""


async def test_client_disconnect_closes_the_connection_to_the_origin() -> None:
    async def behave(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.receive()  # never answers

    async with proxied(behave) as (origin, proxy):
        async with await proxy.connect() as client:
            await client.send(get())
            await origin.has_received(b"GET /")
        with anyio.fail_after(WAIT_SECONDS):
            await origin.disconnected.wait()
