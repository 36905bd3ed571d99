"""The DevTools port outside the jail accepts only this server's own accounts."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from browser_shell.browser.devtools.relay import listen_for_driver, own_uids, relay
from browser_shell.core.errors import BrowserUnavailable, ConfigurationInvalid
from support.egress import Origin, OriginConnection, read_all, read_until, running_origin, until

OTHER_UID = 65534
OWN_UID = os.geteuid()


@dataclass
class RunningRelay:
    port: int
    inner: Origin
    connects: list[str] = field(default_factory=list)


async def echo(connection: OriginConnection) -> None:
    while True:
        await connection.send(await connection.receive())


@asynccontextmanager
async def a_relay(allowed: frozenset[int], *, browser_is_up: bool = True) -> AsyncIterator[RunningRelay]:
    async with running_origin(echo) as inner, anyio.create_task_group() as tasks:
        with listen_for_driver(0) as raw:
            running = RunningRelay(port=raw.getsockname()[1], inner=inner)

            async def connect() -> socket.socket:
                running.connects.append("connect")
                if not browser_is_up:
                    raise BrowserUnavailable("restarting")
                link = socket.create_connection(("127.0.0.1", inner.port))
                link.setblocking(False)
                return link

            tasks.start_soon(partial(relay, raw, connect, allowed_uids=allowed))
            yield running
            tasks.cancel_scope.cancel()


async def test_the_servers_own_account_is_connected() -> None:
    async with a_relay(own_uids(None)) as running, await anyio.connect_tcp("127.0.0.1", running.port) as client:
        await client.send(b"hello")
        assert await read_until(client, b"hello") == b"hello"


@pytest.mark.promise("devtools:own-accounts")
async def test_an_account_that_is_not_listed_is_disconnected() -> None:
    async with (
        a_relay(frozenset({OWN_UID + 1})) as running,
        await anyio.connect_tcp("127.0.0.1", running.port) as client,
    ):
        await client.send(b"GET /json HTTP/1.1\r\n\r\n")
        assert await read_all(client) == b""
    assert (running.connects, running.inner.connections) == ([], 0)


@pytest.mark.skipif(OWN_UID != 0, reason="only root can change its uid")
@pytest.mark.parametrize(("uid", "came"), [(OTHER_UID, b""), (0, b"hello")])
async def test_a_process_of_another_account_is_disconnected(uid: int, came: bytes) -> None:
    async with a_relay(own_uids(None)) as running:
        script = (
            f"import socket; s = socket.create_connection(('127.0.0.1', {running.port}), 5); s.settimeout(5)\n"
            "s.send(b'hello'); print(s.recv(5).decode(), end='')"
        )
        answer = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                ["/usr/bin/python3", "-I", "-c", script], user=uid, cwd="/", capture_output=True, check=False, env={}
            )
        )
    assert answer.stdout == came
    assert running.inner.connections == (1 if came else 0)


async def test_a_socket_that_its_process_has_closed_is_refused() -> None:
    """Older kernels list such a socket as root's. Another account could send a request and close it at once."""
    async with a_relay(own_uids(None)) as running:
        with socket.create_connection(("127.0.0.1", running.port)) as short_lived:
            short_lived.send(b"PUT /json/new?http://10.0.0.1/ HTTP/1.1\r\n\r\n")
        async with await anyio.connect_tcp("127.0.0.1", running.port) as client:
            await client.send(b"hello")
            await read_until(client, b"hello")
    assert running.connects == ["connect"]
    assert b"PUT" not in running.inner.received


async def test_without_a_browser_the_connection_is_closed() -> None:
    async with (
        a_relay(own_uids(None), browser_is_up=False) as running,
        await anyio.connect_tcp("127.0.0.1", running.port) as client,
    ):
        assert await read_all(client) == b""


async def test_closing_one_side_closes_the_other() -> None:
    async with a_relay(own_uids(None)) as running:
        async with await anyio.connect_tcp("127.0.0.1", running.port) as client:
            await client.send(b"hello")
            await read_until(client, b"hello")
        await until(running.inner.disconnected.is_set)


def test_own_uids_are_those_of_the_server_and_of_its_children() -> None:
    assert own_uids(None) == {OWN_UID}
    assert own_uids(1234) == {OWN_UID, 1234}


def test_a_taken_port_stops_the_start_and_is_named() -> None:
    with listen_for_driver(0) as first, pytest.raises(ConfigurationInvalid, match="BROWSER_REMOTE_DEBUGGING_PORT"):
        listen_for_driver(first.getsockname()[1])


def test_the_port_is_on_loopback_only() -> None:
    with listen_for_driver(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        assert Path("/proc/net/tcp").exists()


async def test_a_connection_that_gets_no_thread_does_not_affect_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_thread(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    async with a_relay(own_uids(None)) as running:
        with monkeypatch.context() as starved:
            starved.setattr("browser_shell.browser.devtools.relay.to_thread.run_sync", no_thread)
            async with await anyio.connect_tcp("127.0.0.1", running.port) as client:
                assert await read_all(client) == b""
        async with await anyio.connect_tcp("127.0.0.1", running.port) as client:
            await client.send(b"hello")
            assert await read_until(client, b"hello") == b"hello"
