"""One connection to a daemon: replies are matched to requests, bounded in size, and the daemon's end is an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from browser_shell.browser.driver.actions import PageAction
from browser_shell.browser.driver.connection import MAX_REPLY_BYTES, DaemonConnection, connect, parse_reply
from browser_shell.core.errors import SandboxUnavailable

GET_URL, RELOAD = PageAction(action="url"), PageAction(action="reload")
Daemon: TypeAlias = Callable[["Client"], Awaitable[None]]


class Client:
    """The daemon's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def requests(self) -> AsyncIterator[dict[str, str]]:
        while line := await self._reader.readline():
            yield json.loads(line)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@asynccontextmanager
async def connected_to(daemon: Daemon, directory: Path) -> AsyncIterator[DaemonConnection]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(reader, writer)
        with suppress(ConnectionError):
            await daemon(client)
            await client.close()

    path = directory / "d.sock"
    server = await asyncio.start_unix_server(serve, path)
    connection = await connect(path)
    try:
        yield connection
    finally:
        connection.close()
        server.close()
        await anyio.wait_all_tasks_blocked()


def reply(request: dict[str, str], **data: object) -> bytes:
    return json.dumps({"id": request["id"], "success": True, "data": {"action": request["action"], **data}}).encode()


async def test_requests_share_one_connection_and_get_their_own_replies(tmp_path: Path) -> None:
    async def daemon(client: Client) -> None:
        async for request in client.requests():
            await client.send(reply(request) + b"\n")

    async with connected_to(daemon, tmp_path) as connection:
        assert (await connection.request(GET_URL)).data == {"action": "url"}
        assert (await connection.request(RELOAD)).data == {"action": "reload"}


async def test_a_reply_that_arrives_byte_by_byte_is_put_together(tmp_path: Path) -> None:
    async def daemon(client: Client) -> None:
        async for request in client.requests():
            for byte in reply(request) + b"\n":
                await client.send(bytes([byte]))

    async with connected_to(daemon, tmp_path) as connection:
        assert (await connection.request(GET_URL)).data == {"action": "url"}


async def test_the_late_reply_to_an_abandoned_request_is_skipped(tmp_path: Path) -> None:
    abandoned = anyio.Event()

    async def daemon(client: Client) -> None:
        async for request in client.requests():
            if request["action"] == "url":
                await abandoned.wait()
            await client.send(reply(request) + b"\n")

    async with connected_to(daemon, tmp_path) as connection:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.request, GET_URL)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        abandoned.set()
        assert (await connection.request(RELOAD)).data == {"action": "reload"}


async def test_an_oversized_reply_is_an_error_and_the_next_reply_is_read(tmp_path: Path) -> None:
    async def daemon(client: Client) -> None:
        async for request in client.requests():
            size = 2 * MAX_REPLY_BYTES if request["action"] == "url" else 0
            await client.send(reply(request, text="x" * size) + b"\n")

    async with connected_to(daemon, tmp_path) as connection:
        assert (await connection.request(GET_URL)).code == "output_too_large"
        assert (await connection.request(RELOAD)).success


@pytest.mark.parametrize("partial", [b"", b'{"success":tr'])
async def test_a_daemon_that_closes_the_connection_is_an_error(tmp_path: Path, partial: bytes) -> None:
    async def daemon(client: Client) -> None:
        async for _ in client.requests():
            await client.send(partial)
            return

    async with connected_to(daemon, tmp_path) as connection:
        for _ in range(2):
            with pytest.raises(SandboxUnavailable, match="the driver ended"):
                await connection.request(GET_URL)


async def test_a_socket_without_a_daemon_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="does not accept a connection"):
        await connect(tmp_path / "missing.sock")


@pytest.mark.parametrize("line", [b"", b"nonsense", b"[", b"\xff", b"[]", b"3", b"[" * 100_000 + b"]" * 100_000])
def test_a_line_that_is_no_reply_is_a_failure_with_a_code(line: bytes) -> None:
    reply = parse_reply(line)
    assert (reply.success, reply.code) == (False, "unreadable")
    assert reply.error


@pytest.mark.parametrize(
    ("line", "success"),
    [
        (b'{"success":true,"data":1}', True),
        (b'{"success":1,"data":1}', False),
        (b'{"success":"true"}', False),
        (b'{"success":true,"data":{"confirmation_required":true}}', False),
        (b'{"success":false,"error":"no"}', False),
        (b"{}", False),
    ],
)
def test_success_is_true_and_nothing_else(line: bytes, success: bool) -> None:
    reply = parse_reply(line)
    assert reply.success is success
    assert bool(reply.error) is not success


def test_code_error_warning_and_data_are_kept() -> None:
    reply = parse_reply(b'{"success":false,"data":{"x":1},"error":"gone","code":"tab_gone","warning":"w"}')
    assert (reply.data, reply.error, reply.code, reply.warning) == ({"x": 1}, "gone", "tab_gone", "w")
