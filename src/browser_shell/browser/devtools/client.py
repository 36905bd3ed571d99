"""A client of the Chrome DevTools Protocol: one WebSocket to the browser, with flat CDP sessions for its pages."""

from __future__ import annotations

import itertools
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from browser_shell.core.errors import BrowserShellError, BrowserUnavailable
from browser_shell.core.json_values import JsonObject

_CALL_SECONDS = 5.0
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""The largest messages of the browser contain the title of a page or the text of a dialog."""
_MAX_QUEUED_MESSAGES = 2
"""Received messages that wait to be parsed. More of them stay in the browser."""
_PARSE_IN_THREAD_BYTES = 128 * 1024
"""Parsing a longer message in the event loop would delay other calls by milliseconds."""


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
    session: str | None
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
        self._outbox: deque[str] = deque()
        """Requests that are not sent yet, in order."""
        self._sending = anyio.Lock(fast_acquire=True)

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
        pending = self._pending[request_id] = _PendingReply(arrived=anyio.Event(), session=session)
        try:
            with anyio.fail_after(seconds):
                self._enqueue(request_id, method, params, session)
                await self._send_queued()
                await pending.arrived.wait()
        except TimeoutError as late:
            raise BrowserUnavailable(f"the browser did not answer {method} within {seconds:g} s") from late
        finally:
            del self._pending[request_id]
        return _result(method, pending.reply)

    async def close(self) -> None:
        """Close the connection. Calls that wait for a reply fail."""
        await self._websocket.close()

    def post(self, method: str, params: JsonObject | None = None, *, session: str | None = None) -> None:
        """Send a request in the background, before all later ones, and ignore its reply."""
        self._enqueue(next(self._request_ids), method, params, session)
        self._tasks.start_soon(self._send_if_open)

    async def _send_if_open(self) -> None:
        with suppress(BrowserUnavailable):  # `read` reports the end of the connection.
            await self._send_queued()

    def _enqueue(self, request_id: int, method: str, params: JsonObject | None, session: str | None) -> None:
        message: JsonObject = {"id": request_id, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        self._outbox.append(json.dumps(message))

    async def _send_queued(self) -> None:
        try:
            async with self._sending:
                while self._outbox:
                    await self._websocket.send(self._outbox.popleft())
        except ConnectionClosed as ended:
            raise BrowserUnavailable("the connection to the browser has ended") from ended

    async def read(self) -> None:
        """Deliver replies and events until the connection ends."""
        try:
            async for text in self._websocket:
                is_long = len(text) > _PARSE_IN_THREAD_BYTES
                self._deliver(await to_thread.run_sync(json.loads, text) if is_long else json.loads(text))
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
            if method == "Target.detachedFromTarget":
                self._fail_calls(str(params.get("sessionId")))
            self._on_event(
                DevToolsEvent(method=method, params=params, session=session if isinstance(session, str) else None)
            )

    def _fail_calls(self, session: str) -> None:
        """Fail the calls to a target that has closed. The browser does not reply to them."""
        for pending in self._pending.values():
            if pending.session == session:
                pending.reply = {"error": {"message": "the target was closed"}}
                pending.arrived.set()


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
    url: str,
    on_event: Callable[[DevToolsEvent], None],
    *,
    through: socket.socket | None = None,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
) -> AsyncIterator[DevTools]:
    """Connect to a browser's DevTools URL and read from it while the block runs.

    `through` is a connected socket to use instead of a new one. A longer message than `max_message_bytes` ends the
    connection.

    Raises: BrowserUnavailable.
    """
    try:
        # Without an Origin header Chromium needs no --remote-allow-origins. No proxy: the URL is on loopback.
        websocket = await connect(
            url,
            max_size=max_message_bytes,
            max_queue=_MAX_QUEUED_MESSAGES,
            compression=None,
            ping_interval=None,
            proxy=None,
            sock=through,
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
