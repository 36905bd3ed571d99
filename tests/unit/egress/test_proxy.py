"""The proxy: tunnels, refusals, sessions and limits on connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketStream

from browser_shell.core.decisions import Requester
from support.egress import (
    ALICE,
    OK,
    OriginConnection,
    RunningProxy,
    ScriptedResolver,
    body_of,
    get,
    proxied,
    read_all,
    read_until,
    responding,
    running_proxy,
    until,
)

CONNECT = b"CONNECT page.example:443 HTTP/1.1\r\nHost: page.example:443\r\n\r\n"
CLIENT_HELLO = b"\x16\x03\x01\x00\x05hello"
UPGRADE = b"GET /socket HTTP/1.1\r\nHost: page.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


async def echo(connection: OriginConnection) -> None:
    while True:
        await connection.send(await connection.receive())


@asynccontextmanager
async def open_tunnel(proxy: RunningProxy, head: bytes = CONNECT) -> AsyncIterator[SocketStream]:
    async with await proxy.connect() as client:
        await client.send(head)
        assert (await read_until(client, b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        yield client


@pytest.mark.parametrize("first", [CLIENT_HELLO, UPGRADE], ids=["tls", "plain"])
async def test_tunnel_carries_bytes_in_both_directions(first: bytes) -> None:
    async with proxied(echo) as (origin, proxy), open_tunnel(proxy) as client:
        await client.send(first)
        assert await read_until(client, first) == first
        await client.send(b"more")
        assert await read_until(client, b"more") == b"more"
    assert origin.received.startswith(first)


async def test_bytes_received_with_the_connect_request_are_forwarded() -> None:
    async with proxied(echo) as (origin, proxy), open_tunnel(proxy, CONNECT + CLIENT_HELLO):
        await origin.has_received(CLIENT_HELLO)


@pytest.mark.promise("egress:https-only-in-tunnels")
async def test_plaintext_tunnel_under_an_https_only_policy_is_closed_and_others_stay_open() -> None:
    policy = {"allow_schemes": ["https"]}
    async with proxied(echo, policy) as (origin, proxy), open_tunnel(proxy) as other:
        await other.send(CLIENT_HELLO)
        await read_until(other, CLIENT_HELLO)
        async with open_tunnel(proxy) as client:
            await client.send(UPGRADE)
            assert await read_all(client) == b""
        await other.send(b"still here")
        assert await read_until(other, b"still here")
    assert b"GET /socket" not in origin.received
    assert proxy.denied_rules() == ["url.scheme"]


@pytest.mark.parametrize(
    ("authority", "rule"),
    [
        ("127.0.0.1:9222", "address.loopback"),
        ("[::1]:443", "address.loopback"),
        ("10.0.0.1:443", "address.private"),
        ("169.254.169.254:80", "address.metadata"),
        ("0.0.0.0:443", "address.unspecified"),
        ("2130706433:443", "address.loopback"),
        ("localhost:443", "host.local"),
        ("page.example:25", "url.port"),
        ("nowhere.example:443", "dns.no_answer"),
        ("inside.example:443", "address.private"),
    ],
)
async def test_denied_tunnel_names_the_rule_and_opens_no_connection(authority: str, rule: str) -> None:
    resolver = ScriptedResolver({"inside.example": [["192.168.1.1"]]})
    async with proxied(echo, resolver=resolver) as (origin, proxy):
        received = await proxy.exchange(
            f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode() + CLIENT_HELLO
        )
        assert received.startswith(b"HTTP/1.1 403")
        assert rule.encode() in received
        assert origin.connections == 0
        assert proxy.denied_rules() == [rule]
        assert proxy.audit.kinds == ["MCP_NETWORK_BLOCKED"]


@pytest.mark.parametrize("request_", [CONNECT, get()], ids=["tunnel", "plain"])
async def test_unreachable_host_is_a_bad_gateway_without_a_body(request_: bytes) -> None:
    async with running_proxy({"unsafe_resolve": {"page.example": "127.0.0.1:1"}}) as proxy:
        received = await proxy.exchange(request_)
    assert received.startswith(b"HTTP/1.1 502")
    assert body_of(received) == b""
    assert proxy.denied_rules() == ["connect.failed"]
    assert proxy.audit.kinds == ["EGRESS_CONNECT"]


async def test_half_closed_tunnel_still_carries_the_other_direction() -> None:
    async def behave(connection: OriginConnection) -> None:
        try:
            while True:
                await connection.receive()
        except anyio.EndOfStream:
            await connection.send(b"last bytes")

    async with proxied(behave) as (_, proxy), open_tunnel(proxy) as client:
        await client.send(CLIENT_HELLO)
        await client.send_eof()
        assert await read_all(client) == b"last bytes"


async def test_client_that_sends_nothing_into_its_tunnel_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._HEAD_SECONDS", 0.1)
    async with proxied(echo) as (origin, proxy), open_tunnel(proxy) as client:
        assert await read_all(client) == b""
    assert origin.received == b""


async def test_server_that_closes_ends_the_tunnel() -> None:
    async def behave(connection: OriginConnection) -> None:
        await connection.receive()

    async with proxied(behave) as (_, proxy), open_tunnel(proxy) as client:
        await client.send(CLIENT_HELLO)
        assert await read_all(client) == b""


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"GET https://page.example/ HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"OPTIONS * HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"CONNECT page.example HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"CONNECT page.example/x:80 HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"CONNECT user@page.example:80 HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"GET http://page.example/\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01", b"400"),
        (b"SSH-2.0-x\r\n\r\n", b"400"),
        (
            b"POST http://page.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"400",
        ),
        (b"GET http://page.example/ HTTP/1.0\r\nHost: a\r\n\r\n", b"505"),
        (b"GET http://page.example/ HTTP/1.1\nHost: a\n\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 70_000, b"431"),
        (b"GET http://user:pass@page.example/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://[::1]:80/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://[::ffff:7f00:1]/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://127.0.0.1./ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://evil.example\\@page.example/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
    ],
)
async def test_invalid_or_denied_request_gets_a_response_and_no_connection(raw: bytes, status: bytes) -> None:
    async with proxied(responding(OK)) as (origin, proxy):
        received = await proxy.exchange(raw)
        assert received.startswith(b"HTTP/1.1 " + status)
        assert origin.connections == 0
        assert (await proxy.exchange(get())).endswith(b"ok")


async def test_client_that_still_uploads_receives_the_refusal() -> None:
    request = b"POST http://10.0.0.1/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n"
    async with running_proxy() as proxy, await proxy.connect() as client:
        await client.send(request + b"x" * 4_000_000)
        assert b"address.private" in await read_all(client)


@pytest.mark.parametrize(
    ("host", "title"), [("nowhere.example", b"Host not found"), ("10.0.0.1", b"Blocked by policy")]
)
async def test_refusal_page_separates_unknown_hosts_from_blocked_ones(host: str, title: bytes) -> None:
    async with running_proxy(resolver=ScriptedResolver({})) as proxy:
        received = await proxy.exchange(f"GET http://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 403 " + title)
    assert b"<title>" + title + b"</title>" in received


async def test_reason_on_the_blocked_page_is_escaped() -> None:
    async with running_proxy() as proxy:
        received = await proxy.exchange(b"GET http://10.0.0.1<script>/ HTTP/1.1\r\nHost: x\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 403")
    assert b"<script>" not in received


async def test_client_that_sends_single_bytes_does_not_block_others() -> None:
    async with proxied(responding(OK)) as (_, proxy), await proxy.connect() as slow:
        for byte in get()[:-1]:
            await slow.send(bytes([byte]))
        assert (await proxy.exchange(get())).endswith(b"ok")
        await slow.send(b"\n")
        assert (await read_all(slow)).endswith(b"ok")


async def test_client_that_never_finishes_its_head_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._HEAD_SECONDS", 0.05)
    async with running_proxy() as proxy:
        assert await proxy.exchange(b"GET http://page.exam") == b""


@pytest.mark.promise("egress:own-traffic-refused")
@pytest.mark.parametrize("raw", [get(), b"CONNECT page.example:443 HTTP/1.1\r\nHost: page.example:443\r\n\r\n"])
async def test_request_without_a_session_is_refused_without_a_record(raw: bytes) -> None:
    resolver = ScriptedResolver()
    async with proxied(responding(OK), requester_at=lambda _: None, resolver=resolver) as (origin, proxy):
        received = await proxy.exchange(raw)
    assert received.startswith(b"HTTP/1.1 403")
    assert body_of(received) == b""
    assert (origin.connections, resolver.lookups, proxy.audit.records, proxy.denied_rules()) == (0, [], [], [])


async def test_session_is_found_by_the_address_that_was_dialled() -> None:
    addresses: list[str] = []

    def requester_at(address: str) -> None:
        addresses.append(address)

    async with running_proxy(requester_at=requester_at) as proxy:
        await proxy.exchange(get())
    assert addresses == ["127.0.0.1"]


@pytest.mark.promise("egress:session-share")
async def test_session_cannot_use_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._MAX_CONNECTIONS_PER_SESSION", 3)
    bob = Requester(subject="bob", session_id="s1")
    owners = [ALICE, ALICE, ALICE, ALICE, bob, ALICE]
    served: list[Requester] = []

    def requester_at(_: str) -> Requester:
        served.append(owners[len(served)])
        return served[-1]

    async with proxied(responding(OK), requester_at=requester_at) as (_, proxy):
        clients = [await proxy.connect() for _ in range(3)]
        await until(lambda: len(served) == len(clients))
        assert await proxy.exchange(get()) == b""
        assert (await proxy.exchange(get())).endswith(b"ok")
        for client in clients:
            await client.send(b"nonsense\r\n\r\n")
            await read_all(client)
            await client.aclose()
        assert (await proxy.exchange(get())).endswith(b"ok")
    assert served == owners


async def test_connections_above_the_limit_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._MAX_CONNECTIONS", 2)
    async with proxied(responding(OK)) as (_, proxy):
        first, second = await proxy.connect(), await proxy.connect()
        async with await proxy.connect() as third:
            await third.send(get())
            with anyio.move_on_after(0.1) as waiting:
                await third.receive()
            assert waiting.cancelled_caught
            await first.aclose()
            assert (await read_all(third)).endswith(b"ok")
        await second.aclose()
