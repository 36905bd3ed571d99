"""Cancellation of connection attempts. tests/unit/browser/chromium/test_jail.py covers connections into a namespace."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import anyio
import pytest

from browser_shell.browser.chromium.namespace_sockets import NamespaceSockets


class RedirectedListener(socket.socket):
    """A listener that reports the address of another one, so that it never accepts the client's connection."""

    def __init__(self, address: Any) -> None:
        super().__init__()
        self._address = address
        self._accept_calls = 0
        self.is_awaited = anyio.Event()

    def getsockname(self) -> Any:
        return self._address

    def accept(self) -> tuple[socket.socket, Any]:
        # The first call looks for foreign connections. After the second one, the event loop watches the listener.
        self._accept_calls += 1
        if self._accept_calls == 2:
            self.is_awaited.set()
        return super().accept()


async def test_closing_cancels_attempts_before_their_sockets_are_closed() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        RedirectedListener(other.getsockname()) as listener,
        socket.socket() as client,
    ):
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        for each in (listener, client):
            each.setblocking(False)
        sockets = NamespaceSockets(listener=listener, client=client)
        errors = list[type[BaseException]]()

        async def attempt() -> None:
            try:
                (await sockets.connect(1)).close()
            except OSError as error:
                errors.append(type(error))

        with anyio.fail_after(5):
            async with anyio.create_task_group() as attempts:
                for _ in range(3):  # The first attempt waits for its connection, the others wait for the lock.
                    attempts.start_soon(attempt)
                await listener.is_awaited.wait()
                assert errors == []
                await sockets.aclose()
        assert errors == [ConnectionAbortedError] * 3
        # A watcher that is left behind would receive the events of a later socket with the same descriptor.
        loop = asyncio.get_running_loop()
        assert not loop.remove_reader(listener.fileno())
        assert not loop.remove_writer(client.fileno())
        with pytest.raises(ConnectionAbortedError):
            await sockets.connect(1)


async def test_closing_without_an_attempt_returns_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        with anyio.fail_after(5):
            await NamespaceSockets(listener=listener, client=client).aclose()
