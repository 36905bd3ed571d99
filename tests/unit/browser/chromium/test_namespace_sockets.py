"""Sockets out of two sockets. What they are for, with a jail around them: test_jail_walls.py."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import anyio
import pytest

from browser_shell.browser.chromium.namespace_sockets import NamespaceSockets


class Deaf(socket.socket):
    """A listener that never hears the call: it is made at another's address."""

    address: Any

    def getsockname(self) -> Any:
        return self.address


async def test_a_call_under_way_is_broken_off_before_its_sockets_are_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as hears, Deaf() as listener, socket.socket() as caller:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.address = hears.getsockname()
        for each in (listener, caller):
            each.setblocking(False)
        doors = NamespaceSockets(listener=listener, caller=caller)
        faults = list[type[BaseException]]()

        async def visit() -> None:
            try:
                (await doors.connect(1)).close()
            except OSError as fault:
                faults.append(type(fault))

        with anyio.fail_after(5):
            async with anyio.create_task_group() as visitors:
                for _ in range(3):  # One calls, and two wait for their turn.
                    visitors.start_soon(visit)
                await anyio.sleep(0.1)
                assert faults == []
                await doors.end()
        assert faults == [ConnectionAbortedError] * 3
        # Nobody watches them any more: a file of the same number would be taken for them.
        loop = asyncio.get_running_loop()
        assert not loop.remove_reader(listener.fileno())
        assert not loop.remove_writer(caller.fileno())
        with pytest.raises(ConnectionAbortedError):
            await doors.connect(1)


async def test_ending_waits_for_nobody_when_nobody_calls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as caller:
        with anyio.fail_after(1):
            await NamespaceSockets(listener=listener, caller=caller).end()
