"""How the public port listens and stops, and how long it waits for whom."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import anyio
from anyio.abc import TaskStatus
from starlette.types import ASGIApp
from uvicorn._types import ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import Server

from browser_shell.asgi.disconnect import STATE_KEY, DisconnectSignal
from browser_shell.asgi.responses import raw_answer
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.routes import SOCKET_PATHS
from browser_shell.http1.framing import (
    MAX_HEAD_BYTES,
    ChunkedFraming,
    Fault,
    LengthFraming,
    looks_wrong,
    read_head,
)

SECONDS_TO_FINISH = 2
SECONDS_TO_STOP = SECONDS_TO_FINISH + 3
MAX_DISCARDED_BYTES = 64 * 1024 * 1024
MAX_SOCKET_MESSAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTimeouts:
    """How long the server waits for its clients, and for how many."""

    head_seconds: float = 10.0
    """From the first byte of a request, or from the connection, to the end of the headers."""
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    """Between two requests of one connection."""
    stuck_write_seconds: float = 60.0
    """For a client that does not read what it asked for."""
    linger_seconds: float = 2.0
    """A refused client may still be writing. Closing at once would reset the connection before it has read why."""
    max_connections: int = 256


async def serve_http(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    on_ready: Callable[[int], None],
    patience: HttpTimeouts | None = None,
) -> None:
    """Serve until cancelled, then give open calls a moment to end. `on_ready` gets the port, also when 0 was asked for.

    Raises: ConfigurationInvalid when the address cannot be listened on.
    """
    await serve_listener(app, listen_on(host, port), on_ready=on_ready, patience=patience)


async def serve_listener(
    app: ASGIApp, listener: socket.socket, *, on_ready: Callable[[int], None], patience: HttpTimeouts | None = None
) -> None:
    """The same, on a socket that listens already; it is closed at the end."""
    server = _Server(
        Config(
            app,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # Nobody's word for where a request came from is taken here.
            http=_protocol(patience or HttpTimeouts()),
            ws=RefusableSocket,
            ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=SECONDS_TO_FINISH,
        )
    )

    async def serve(*, task_status: TaskStatus[None]) -> None:
        # uvicorn has to be asked to stop; a cancellation in its middle would leave connections behind.
        with stopping:
            await server.serve_announced(listener, task_status)

    stopping = anyio.CancelScope(shield=True)
    with listener:
        async with anyio.create_task_group() as tasks:
            await tasks.start(serve)
            on_ready(int(listener.getsockname()[1]))
            try:
                await anyio.sleep_forever()
            finally:
                server.should_exit = True
                stopping.deadline = anyio.current_time() + SECONDS_TO_STOP


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(Server):
    """uvicorn inside somebody else's program: it neither takes the signals nor raises them again."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # theirs is a generator's type
        return nullcontext()

    async def serve_announced(self, listener: socket.socket, task_status: TaskStatus[None]) -> None:
        self._announce = task_status
        await self.serve(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce.started()


class _Stage(Enum):
    HEAD = "waiting for a request, or in its head"
    BODY = "the head was good"
    REFUSED = "answered; whatever comes is thrown away"


class StrictHttp(HttpToolsProtocol):
    """uvicorn's protocol behind a stricter reader, with deadlines and a bound on connections."""

    patience: ClassVar[HttpTimeouts]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.since = 0.0
        self._stage = _Stage.HEAD
        self._beginning = bytearray()
        self._is_upgrade = False
        self._has_begun = False
        self._framing: LengthFraming | ChunkedFraming = LengthFraming(0)
        self._discarded = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._departure = DisconnectSignal()
        self.app_state = {**self.app_state, STATE_KEY: self._departure}

    @property
    def idle(self) -> bool:
        """Whether nobody waits for an answer here."""
        return self._stage is not _Stage.BODY or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.since = self.loop.time()
        self._arm(self.patience.head_seconds)
        if len(self.connections) > self.patience.max_connections:
            self._make_room()

    def _make_room(self) -> None:
        """Sockets that only sit there never keep out one that has something to say."""
        idle = [
            other for other in self.connections if isinstance(other, StrictHttp) and other.idle and other is not self
        ]
        if idle:
            min(idle, key=lambda other: other.since).transport.abort()
        else:
            self._refuse(Fault(503, "too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._stuck is not None:
            self._stuck.cancel()
        super().connection_lost(exc)
        self._departure.happened()

    def data_received(self, data: bytes) -> None:
        match self._stage:
            case _Stage.HEAD:
                self._take_head(data)
            case _Stage.BODY:
                self._take_body(data)
            case _Stage.REFUSED:
                self._discard(len(data))

    def _take_head(self, data: bytes) -> None:
        known = len(self._beginning)
        self._beginning += data
        end = self._beginning.find(b"\r\n\r\n", max(0, known - 3)) + 4
        head = self._beginning[:end] if end > 3 else self._beginning
        if looks_wrong(head, known_good=known):
            self._refuse(Fault(400, "not an HTTP/1.1 request"))
        elif len(head) > MAX_HEAD_BYTES:
            self._refuse(Fault(431, "the head is too large"))
        elif end > 3:
            rest = bytes(self._beginning[end:])
            self._begin(bytes(head), rest)
        elif not known:
            self._arm(self.patience.head_seconds)

    def _begin(self, head: bytes, rest: bytes) -> None:
        read = read_head(head)
        if isinstance(read, Fault):
            self._refuse(read)
            return
        self._beginning.clear()
        self._stage, self._discarded = _Stage.BODY, 0
        self._framing = ChunkedFraming() if read.chunked else LengthFraming(read.length)
        # Whatever else asks for an upgrade is answered as the plain request it also is.
        self._is_upgrade = read.websocket and read.path in SOCKET_PATHS
        self._disarm()
        self._has_begun = False
        self.cycle = None  # type: ignore[assignment]  # as uvicorn has it before the first request
        super().data_received(read.composed(upgrade=self._is_upgrade))
        if rest and self._stage is _Stage.BODY:
            self._take_body(rest)
        if self._stage is _Stage.BODY and not self._framing.done:
            self._arm(self.patience.body_seconds)

    def _take_body(self, data: bytes) -> None:
        taken = self._framing.take(data)
        if isinstance(taken, Fault):
            self._refuse(taken)
            return
        if taken < len(data):
            # A second request before the first was answered: nobody's client does that, smugglers do.
            if self.cycle.response_complete:
                self._close()
                return
            self.cycle.keep_alive = False
        if self.cycle.response_complete:
            self._discard(taken)
        if self._framing.done:
            self._disarm()
        if taken:
            super().data_received(data[:taken])
        if self._framing.done and self._stage is _Stage.BODY:
            # uvicorn stops reading at a large body. Nothing more than this request is ever let through to it, and who
            # does not read does not see that its client has gone.
            self.flow.resume_reading()
        self._next()

    def _discard(self, count: int) -> None:
        self._discarded += count
        if self._discarded > MAX_DISCARDED_BYTES:
            self.transport.abort()

    def on_response_complete(self) -> None:
        # Without uvicorn's own: it looks for requests that came too early, which are never let through to it, and sets
        # a timer of its own.
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._close()
        else:
            self.flow.resume_reading()
            self._next()

    def _close(self) -> None:
        """What was written still goes out, but not for ever."""
        self.transport.close()
        self._arm(self.patience.stuck_write_seconds)

    def _next(self) -> None:
        """Back to waiting, when both the request and its answer are complete."""
        if self._stage is _Stage.BODY and self._framing.done and self.cycle.response_complete and self.cycle.keep_alive:
            self._stage = _Stage.HEAD
            self.since = self.loop.time()
            self._arm(self.patience.idle_seconds)

    # Should the parser ever read a head differently, the request ends there: an exception in these is a bad request.

    def on_message_begin(self) -> None:
        if self._has_begun:
            raise ValueError("two requests where one was read")
        self._has_begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if bool(self.parser.should_upgrade()) is not self._is_upgrade:
            raise ValueError("another protocol where none was read")
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        return self._is_upgrade

    def handle_websocket_upgrade(self) -> None:
        # The socket belongs to another protocol now. Frames that came before the handshake was answered are lost.
        self._disarm()
        self._stage = _Stage.REFUSED
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Fault(400, "not an HTTP/1.1 request"))

    def _refuse(self, fault: Fault) -> None:
        answering = self._stage is _Stage.BODY and self.cycle is not None
        self._stage = _Stage.REFUSED
        self._beginning.clear()
        if answering:
            begun = self.cycle.response_started
            self.cycle.disconnected = True
            self.cycle.waiting_for_100_continue = False
            self.cycle.message_event.set()
            if begun:
                self.transport.abort()
                return
        self.transport.write(raw_answer(fault.status, fault.reason))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._arm(self.patience.linger_seconds)

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        waiting_for_more = bool(self._beginning) or (self._stage is _Stage.BODY and not self.cycle.response_complete)
        if waiting_for_more and not self.transport.is_closing():
            self._refuse(Fault(408, "the request took too long to arrive"))
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.patience.stuck_write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()


def _protocol(patience: HttpTimeouts) -> type[StrictHttp]:
    """uvicorn makes one for each connection and takes nothing but the class."""
    return type("StrictHttp", (StrictHttp,), {"patience": patience})


class RefusableSocket(WebSocketsSansIOProtocol):
    """uvicorn's, only that an answer instead of a handshake is not reported as a fault of the application."""

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True


def listen_on(host: str, port: int) -> socket.socket:
    """Raises: ConfigurationInvalid when the address cannot be listened on."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigurationInvalid(f"{host} is not an address to listen on") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigurationInvalid(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener
