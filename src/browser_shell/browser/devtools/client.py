"""A small client of the Chrome DevTools Protocol: one socket to the browser, flat sessions to its pages."""

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
# A page's title or a dialog's text is the largest thing we ask for; a screenshot never travels here.
_MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class DevToolsRefused(BrowserShellError):
    """The browser understood the request and said no: mostly, that a page is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevToolsEvent:
    """Something that happened in the browser."""

    method: str
    params: JsonObject
    session: str | None


@dataclass(slots=True)
class _Pending:
    done: anyio.Event
    reply: JsonObject | None = None


class DevTools:
    """One connection. It is dead once `closed` is set; nothing here reconnects."""

    def __init__(self, link: ClientConnection, tasks: TaskGroup, on_event: Callable[[DevToolsEvent], None]) -> None:
        self.closed = anyio.Event()
        self._link = link
        self._tasks = tasks
        self._on_event = on_event
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}

    async def call(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        session: str | None = None,
        seconds: float = _CALL_SECONDS,
    ) -> JsonObject:
        """One request and its result.

        Raises: BrowserUnavailable when the connection ends or no answer comes in time, DevToolsRefused.
        """
        number = next(self._numbers)
        pending = self._pending[number] = _Pending(done=anyio.Event())
        try:
            with anyio.fail_after(seconds):
                await self._send(number, method, params, session)
                await pending.done.wait()
        except TimeoutError as late:
            raise BrowserUnavailable(f"the browser did not answer {method} within {seconds:.0f} s") from late
        finally:
            del self._pending[number]
        return _result_of(method, pending.reply)

    def post(self, method: str, params: JsonObject | None = None, *, session: str | None = None) -> None:
        """A request whose answer nobody needs."""
        self._tasks.start_soon(self._send_quietly, method, params, session)

    async def _send_quietly(self, method: str, params: JsonObject | None, session: str | None) -> None:
        try:
            await self._send(next(self._numbers), method, params, session)
        except BrowserUnavailable:
            return  # The connection's end is reported once, by the reader.

    async def _send(self, number: int, method: str, params: JsonObject | None, session: str | None) -> None:
        message: JsonObject = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        try:
            await self._link.send(json.dumps(message))
        except ConnectionClosed as ended:
            raise BrowserUnavailable("the connection to the browser has ended") from ended

    async def read(self) -> None:
        """Delivers replies and events until the connection ends."""
        try:
            async for text in self._link:
                self._deliver(json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()
            for pending in self._pending.values():
                pending.done.set()

    def _deliver(self, message: JsonObject) -> None:
        number = message.get("id")
        if isinstance(number, int):
            pending = self._pending.get(number)
            if pending is not None:
                pending.reply = message
                pending.done.set()
            return
        method, params, session = message.get("method"), message.get("params"), message.get("sessionId")
        if isinstance(method, str) and isinstance(params, dict):
            self._on_event(
                DevToolsEvent(method=method, params=params, session=session if isinstance(session, str) else None)
            )


def _result_of(method: str, reply: JsonObject | None) -> JsonObject:
    if reply is None:
        raise BrowserUnavailable("the connection to the browser has ended")
    error = reply.get("error")
    if isinstance(error, dict):
        raise DevToolsRefused(f"{method}: {error.get('message', 'refused')}")
    result = reply.get("result")
    return result if isinstance(result, dict) else {}


@asynccontextmanager
async def connect_devtools(
    url: str, on_event: Callable[[DevToolsEvent], None], *, through: socket.socket | None = None
) -> AsyncIterator[DevTools]:
    """Connects to a browser's DevTools address, over a given connection if there is one, and reads from it while the
    block runs.

    Raises: BrowserUnavailable.
    """
    try:
        # Names no Origin: Chromium then needs no --remote-allow-origins. No proxy: the address is on loopback.
        link = await connect(
            url, max_size=_MAX_MESSAGE_BYTES, compression=None, ping_interval=None, proxy=None, sock=through
        )
    except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as cause:
        raise BrowserUnavailable("the browser does not accept a DevTools connection") from cause
    async with anyio.create_task_group() as tasks:
        devtools = DevTools(link, tasks, on_event)
        tasks.start_soon(devtools.read)
        try:
            yield devtools
        finally:
            with anyio.move_on_after(1, shield=True):
                await link.close()
            tasks.cancel_scope.cancel()
