"""A client of the Chrome DevTools Protocol: one WebSocket to the browser, with flat CDP sessions for its pages."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from browser_shell.core.errors import BrowserShellError, BrowserUnavailable
from browser_shell.core.json_values import JsonObject

_CALL_SECONDS = 5.0
_MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""The largest messages contain the title of a page or the text of a dialog."""


class DevToolsError(BrowserShellError):
    """The browser replied with an error, usually because a page is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevToolsEvent:
    """A notification from the browser."""

    method: str
    params: JsonObject
    session: str | None
    """CDP session of the page; None for the browser itself."""


@dataclass(slots=True)
class _PendingReply:
    arrived: anyio.Event
    reply: JsonObject | None = None


class DevTools:
    """One connection. It does not reconnect: once `closed` is set, every call fails."""

    def __init__(
        self, websocket: ClientConnection, tasks: TaskGroup, on_event: Callable[[DevToolsEvent], None]
    ) -> None:
        self.closed = anyio.Event()
        self._websocket = websocket
        self._tasks = tasks
        self._on_event = on_event
        self._request_ids = itertools.count(1)
        self._pending: dict[int, _PendingReply] = {}

    async def call(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        session: str | None = None,
        seconds: float = _CALL_SECONDS,
    ) -> JsonObject:
        """Send one request and return its result.

        Raises: BrowserUnavailable when the connection ends or no reply comes in time, DevToolsError.
        """
        request_id = next(self._request_ids)
        pending = self._pending[request_id] = _PendingReply(arrived=anyio.Event())
        try:
            with anyio.fail_after(seconds):
                await self._send(request_id, method, params, session)
                await pending.arrived.wait()
        except TimeoutError as late:
            raise BrowserUnavailable(f"the browser did not answer {method} within {seconds:g} s") from late
        finally:
            del self._pending[request_id]
        return _result(method, pending.reply)

    def post(self, method: str, params: JsonObject | None = None, *, session: str | None = None) -> None:
        """Send a request in the background and ignore its reply."""
        self._tasks.start_soon(self._send_if_open, method, params, session)

    async def _send_if_open(self, method: str, params: JsonObject | None, session: str | None) -> None:
        try:
            await self._send(next(self._request_ids), method, params, session)
        except BrowserUnavailable:
            return  # `read` reports the end of the connection.

    async def _send(self, request_id: int, method: str, params: JsonObject | None, session: str | None) -> None:
        message: JsonObject = {"id": request_id, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        try:
            await self._websocket.send(json.dumps(message))
        except ConnectionClosed as ended:
            raise BrowserUnavailable("the connection to the browser has ended") from ended

    async def read(self) -> None:
        """Deliver replies and events until the connection ends."""
        try:
            async for text in self._websocket:
                self._deliver(json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()
            for pending in self._pending.values():
                pending.arrived.set()

    def _deliver(self, message: JsonObject) -> None:
        request_id = message.get("id")
        if isinstance(request_id, int):
            pending = self._pending.get(request_id)
            if pending is not None:
                pending.reply = message
                pending.arrived.set()
            return
        method, params, session = message.get("method"), message.get("params"), message.get("sessionId")
        if isinstance(method, str) and isinstance(params, dict):
            self._on_event(
                DevToolsEvent(method=method, params=params, session=session if isinstance(session, str) else None)
            )


def _result(method: str, reply: JsonObject | None) -> JsonObject:
    if reply is None:
        raise BrowserUnavailable("the connection to the browser has ended")
    error = reply.get("error")
    if isinstance(error, dict):
        raise DevToolsError(f"{method}: {error.get('message', 'refused')}")
    result = reply.get("result")
    return result if isinstance(result, dict) else {}


@asynccontextmanager
async def connect_devtools(
    url: str, on_event: Callable[[DevToolsEvent], None], *, through: socket.socket | None = None
) -> AsyncIterator[DevTools]:
    """Connect to a browser's DevTools URL and read from it while the block runs.

    `through` is a connected socket to use instead of a new one.

    Raises: BrowserUnavailable.
    """
    try:
        # Without an Origin header Chromium needs no --remote-allow-origins. No proxy: the URL is on loopback.
        websocket = await connect(
            url, max_size=_MAX_MESSAGE_BYTES, compression=None, ping_interval=None, proxy=None, sock=through
        )
    except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as cause:
        raise BrowserUnavailable("the browser does not accept a DevTools connection") from cause
    async with anyio.create_task_group() as tasks:
        devtools = DevTools(websocket, tasks, on_event)
        tasks.start_soon(devtools.read)
        try:
            yield devtools
        finally:
            with anyio.move_on_after(1, shield=True):
                await websocket.close()
            tasks.cancel_scope.cancel()
