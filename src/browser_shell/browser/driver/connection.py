"""A connection to one daemon: newline-delimited JSON over its unix socket, one request at a time."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from browser_shell.browser.driver.actions import Action
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.json_values import JsonValue

MAX_REPLY_BYTES = 4 * 1024 * 1024
"""Upper bound for one line. The replies to the requests in `actions` have a URL, a title, a path or an error."""
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReply:
    """The outcome of one action."""

    success: bool
    data: JsonValue = None
    error: str = ""
    code: str = ""
    """A code of the driver, for example `tab_gone`. This module adds `unreadable` and `output_too_large`."""
    warning: str = ""


TAB_GONE = DriverReply(success=False, error="the tab is gone", code="tab_gone")
"""Used in place of a reply when the tab has closed: the daemon does not detect this."""
TOO_LARGE = DriverReply(success=False, error="the output was larger than the server reads", code="output_too_large")


def parse_reply(line: bytes) -> DriverReply:
    """Parse one line. A line that is not a JSON object becomes a failure with the code `unreadable`."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        return DriverReply(success=False, error="the driver's reply is not a JSON object", code="unreadable")
    data = reply.get("data")
    # The driver reports success for an action that waits for a confirmation, although nothing ran.
    unconfirmed = isinstance(data, dict) and bool(data.get("confirmation_required"))
    success = reply.get("success") is True and not unconfirmed
    error = _text(reply.get("error")) or ("a confirmation is required" if unconfirmed else "no reason was given")
    return DriverReply(
        success=success,
        data=data,
        error="" if success else error,
        code=_text(reply.get("code")),
        warning=_text(reply.get("warning")),
    )


def _text(value: JsonValue | None) -> str:
    return value if isinstance(value, str) else ""


async def connect(socket_path: Path) -> DaemonConnection:
    """Connect to a daemon. Raises: SandboxUnavailable when no daemon listens on this socket."""
    try:
        # Streams of asyncio: a cancelled receive on anyio's unix streams may log an InvalidStateError (anyio 4.x).
        return DaemonConnection(*await asyncio.open_unix_connection(socket_path))
    except OSError as cause:
        raise SandboxUnavailable(f"the driver does not accept a connection: {cause.strerror}") from cause


class DaemonConnection:
    """Sends actions and matches the replies to them.

    The daemon answers in the order of the requests. The reply to a caller that gave up is skipped by the next request.
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
            self._writer.write(action.encode(str(request_id)))
            self._unanswered.append(request_id)
            await self._writer.drain()
            while True:
                reply = await self._next_reply()
                if self._unanswered.popleft() == request_id:
                    return reply
        except (EOFError, OSError) as cause:
            self.close()
            raise SandboxUnavailable("the driver ended while the command ran") from cause

    @property
    def is_busy(self) -> bool:
        """Whether a request has no reply yet, perhaps because its caller gave up."""
        return bool(self._unanswered)

    @property
    def is_closed(self) -> bool:
        return self._writer.is_closing()

    def close(self) -> None:
        """Discard data that is not sent yet: a daemon that hangs would never read it."""
        self._writer.transport.abort()

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
