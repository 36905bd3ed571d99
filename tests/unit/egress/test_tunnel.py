"""CONNECT: bytes both ways to a host that was judged, and nothing at all to any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from browser_shell.egress.tunnel import join, looks_like_tls
from support.egress import (
    LONGEST_WAIT_SECONDS,
    RunningProxy,
    ScriptedResolver,
    Talk,
    a_proxy,
    an_origin,
    read_all,
    read_until,
)

CONNECT = b"CONNECT page.example:443 HTTP/1.1\r\nHost: page.example:443\r\n\r\n"
CLIENT_HELLO = b"\x16\x03\x01\x00\x05hello"
UPGRADE = b"GET /socket HTTP/1.1\r\nHost: page.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def to(port: int, **more: object) -> dict[str, object]:
    return {"unsafe_resolve": {"page.example": f"127.0.0.1:{port}"}, **more}


async def echo(talk: Talk) -> None:
    while True:
        await talk.say(await talk.some())


@asynccontextmanager
async def a_tunnel(proxy: RunningProxy, head: bytes = CONNECT) -> AsyncIterator[SocketStream]:
    async with await proxy.connect() as client:
        await client.send(head)
        assert (await read_until(client, b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        yield client


@pytest.mark.parametrize("first", [CLIENT_HELLO, UPGRADE], ids=["tls", "plain"])
async def test_a_tunnel_carries_bytes_both_ways(first: bytes) -> None:
    async with an_origin(echo) as origin, a_proxy(to(origin.port)) as proxy, a_tunnel(proxy) as client:
        await client.send(first)
        assert await read_until(client, first) == first
        await client.send(b"more")
        assert await read_until(client, b"more") == b"more"
    assert origin.received.startswith(first)


async def test_bytes_that_come_with_the_head_are_not_lost() -> None:
    async with an_origin(echo) as origin, a_proxy(to(origin.port)) as proxy, a_tunnel(proxy, CONNECT + CLIENT_HELLO):
        await origin.has_received(CLIENT_HELLO)


@pytest.mark.promise(
    "egress: a policy of https only holds inside tunnels too, and a refusal there ends one tunnel only"
)
async def test_a_plain_tunnel_under_an_https_only_policy_delivers_no_byte_and_harms_nobody_else() -> None:
    policy = {"allow_schemes": ["https"]}
    async with an_origin(echo) as origin, a_proxy(to(origin.port, **policy)) as proxy, a_tunnel(proxy) as other:
        await other.send(CLIENT_HELLO)
        await read_until(other, CLIENT_HELLO)
        async with a_tunnel(proxy) as client:
            await client.send(UPGRADE)
            assert await read_all(client) == b""
        await other.send(b"still here")
        assert await read_until(other, b"still here")
    assert b"GET /socket" not in origin.received
    assert proxy.refused() == ["url.scheme"]


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
async def test_a_refused_tunnel_says_why_and_reaches_nobody(authority: str, rule: str) -> None:
    resolver = ScriptedResolver({"inside.example": [["192.168.1.1"]]})
    async with an_origin(echo) as origin, a_proxy(to(origin.port), resolver=resolver) as proxy:
        came = await proxy.ask(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode() + CLIENT_HELLO)
        assert came.startswith(b"HTTP/1.1 403")
        assert rule.encode() in came
        assert origin.connections == 0
        assert proxy.refused() == [rule]
        assert proxy.audit.kinds == ["MCP_NETWORK_BLOCKED"]


async def test_a_host_that_does_not_answer_is_a_bad_gateway() -> None:
    async with a_proxy(to(1)) as proxy:
        assert (await proxy.ask(CONNECT)).startswith(b"HTTP/1.1 502")
        assert proxy.refused() == []


async def test_one_side_may_end_while_the_other_still_speaks() -> None:
    async def behave(talk: Talk) -> None:
        try:
            while True:
                await talk.some()
        except anyio.EndOfStream:
            await talk.say(b"last words")

    async with an_origin(behave) as origin, a_proxy(to(origin.port)) as proxy, a_tunnel(proxy) as client:
        await client.send(CLIENT_HELLO)
        await client.send_eof()
        assert await read_all(client) == b"last words"


async def test_a_server_that_ignores_the_end_does_not_keep_the_tunnel() -> None:
    async with pair() as (near, client), pair() as (far, server):
        with anyio.fail_after(LONGEST_WAIT_SECONDS):
            await client.send_eof()
            await join(near, far, ending_seconds=0.05)
        await far.aclose()
        assert await read_all(server) == b""


async def test_a_tunnel_in_which_nothing_happens_ends() -> None:
    async with pair() as (near, _), pair() as (far, _):
        with anyio.fail_after(LONGEST_WAIT_SECONDS):
            await join(near, far, idle_seconds=0.05)


async def test_a_client_that_says_nothing_after_its_connect_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._HEAD_SECONDS", 0.1)
    async with an_origin(echo) as origin, a_proxy(to(origin.port)) as proxy, a_tunnel(proxy) as client:
        assert await read_all(client) == b""
    assert origin.received == b""


async def test_a_reset_by_the_server_ends_the_client_too() -> None:
    async def behave(talk: Talk) -> None:
        await talk.some()

    async with an_origin(behave) as origin, a_proxy(to(origin.port)) as proxy, a_tunnel(proxy) as client:
        await client.send(CLIENT_HELLO)
        assert await read_all(client) == b""


@pytest.mark.parametrize(
    ("first", "tls"), [(b"\x16\x03\x01", True), (b"\x16", True), (b"\x15\x03", False), (b"GET /", False), (b"", False)]
)
def test_tls_shows_in_the_first_byte(first: bytes, tls: bool) -> None:
    assert looks_like_tls(first) is tls


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[SocketStream, SocketStream]]:
    """Two ends of one real connection."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        (inner,) = listener.listeners
        assert isinstance(inner, SocketListener)
        one = await anyio.connect_tcp("127.0.0.1", inner.extra(SocketAttribute.local_port))  # noqa: S610
        other = await inner.accept()
        async with one, other:
            yield one, other
