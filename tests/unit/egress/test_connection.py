"""Tunnels between two sockets, and HTTP messages on one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from browser_shell.egress.connection import HttpConnection, join_streams
from browser_shell.http1.heads import Framing, RequestHeadReader
from support.egress import WAIT_SECONDS, read_all


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


async def test_half_closed_tunnel_ends_at_its_timeout() -> None:
    async with pair() as (near, client), pair() as (far, server):
        with anyio.fail_after(WAIT_SECONDS):
            await client.send_eof()
            await join_streams(near, far, half_closed_seconds=0.05)
        await far.aclose()
        assert await read_all(server) == b""


async def test_idle_tunnel_ends_at_its_timeout() -> None:
    async with pair() as (near, _), pair() as (far, _):
        with anyio.fail_after(WAIT_SECONDS):
            await join_streams(near, far, idle_seconds=0.05)


async def test_bytes_after_a_body_stay_for_the_next_head() -> None:
    async with pair() as (near, client):
        connection = HttpConnection(near, RequestHeadReader(max_bytes=100))
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nbodyGET / HTTP/1.1\r\nHost: y\r\n\r\nrest")
        with anyio.fail_after(WAIT_SECONDS):
            assert (await connection.read_head()).endswith(b"Host: x")
            assert b"".join([part async for part in connection.read_body(Framing.LENGTH, 4)]) == b"body"
            assert (await connection.read_head()).endswith(b"Host: y")
        assert connection.take_buffer() == b"rest"
