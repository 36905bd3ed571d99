"""A connection to one daemon: newline-delimited JSON over its unix socket, one request at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from itertools import count
from pathlib import Path

from browser_shell.browser.driver.actions import Action
from browser_shell.browser.driver.reply import TOO_LARGE, DriverReply, parse_reply
from browser_shell.core.errors import SandboxUnavailable

MAX_REPLY_BYTES = 4 * 1024 * 1024
"""A snapshot of a page with 900 controls has 73 kB (shared facts, agent-browser 0.41.0); this is 50 times as much."""
_CHUNK_BYTES = 64 * 1024


async def connect(socket_path: Path) -> DaemonConnection:
    """Raises: SandboxUnavailable when no daemon listens there."""
    try:
        # Streams of asyncio: a cancelled receive on anyio's unix streams may log an InvalidStateError (anyio 4.x).
        return DaemonConnection(*await asyncio.open_unix_connection(socket_path))
    except OSError as cause:
        raise SandboxUnavailable(f"the driver does not accept a connection: {cause.strerror}") from cause


class DaemonConnection:
    """Sends actions and matches the replies to them.

    The daemon answers in the order of the requests. A caller that gave up leaves its reply behind; the next request
    skips it.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._request_ids = count(1)
        self._unanswered: deque[int] = deque()
        self._received = bytearray()
        self._oversized = False
        """Whether the beginning of the current line was discarded because the line is too long."""

    async def request(self, action: Action) -> DriverReply:
        """Send one action and return the reply to it. May be cancelled.

        Raises: SandboxUnavailable when the daemon closes the connection.
        """
        request_id = next(self._request_ids)
        try:
            self._unanswered.append(request_id)
            self._writer.write(action.encode(str(request_id)))
            await self._writer.drain()
            while True:
                reply = await self._next_reply()
                if self._unanswered.popleft() == request_id:
                    return reply
        except (EOFError, OSError) as cause:
            raise SandboxUnavailable("the driver ended while the command ran") from cause

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _next_reply(self) -> DriverReply:
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > MAX_REPLY_BYTES:
                self._oversized, searched = True, 0
                self._received.clear()
            part = await self._reader.read(_CHUNK_BYTES)
            if not part:
                raise EOFError
            self._received += part
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        oversized, self._oversized = self._oversized, False
        return TOO_LARGE if oversized else parse_reply(line)
