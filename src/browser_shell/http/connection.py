"""One connection of the public listener: uvicorn behind a strict HTTP/1.1 parser, with timeouts.

uvicorn accepts the connection. Before its parser sees a request, `http1` parses the head strictly, works out where the
body ends and serialises a clean request. Both parsers therefore see the same request, which prevents smuggling.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from browser_shell.asgi import DISCONNECT_SIGNAL, DisconnectSignal, raw_refusal
from browser_shell.http.routes import SOCKET_PATHS
from browser_shell.http1.body import LAST_CHUNK, BodyReader, encode_chunk
from browser_shell.http1.heads import Framing, MessageInvalid, Request, RequestHeadReader, parse_request, write_head

MAX_HEAD_BYTES = 16 * 1024
MAX_TARGET_BYTES = 8 * 1024
MAX_HEADERS = 64
MAX_HANDSHAKE_LINE_BYTES = 8 * 1024 - 64
"""The websockets library refuses header lines above 8 KiB."""
MAX_DISCARDED_BYTES = 64 * 1024 * 1024
_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
"""Methods that the gateway decides about. CONNECT is not among them: uvicorn's parser reads no body after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTimeouts:
    """Timeouts of one connection, and the maximum number of connections."""

    head_seconds: float = 10.0
    """From the first byte of a request, or from the start of the connection, to the end of the head."""
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    """Between two requests of one connection."""
    blocked_write_seconds: float = 60.0
    """For a client that does not read its response."""
    linger_seconds: float = 2.0
    """Between a refusal and the end of the connection. Closing while the client still writes would reset the
    connection before the client has read the refusal."""
    max_connections: int = 256


class _Phase(Enum):
    HEAD = auto()
    """Waiting for a request, or in the middle of its head."""
    REQUEST = auto()
    """From a complete head to the end of both the body and the response."""
    DISCARD = auto()
    """The connection was refused, or handed over to the WebSocket protocol. Input is discarded."""


class StrictHttp(HttpToolsProtocol):
    """One connection. Replaces uvicorn's handling of input, timeouts and refusals.

    `self.cycle` is uvicorn's state of the current request and its response.
    """

    timeouts: ClassVar[HttpTimeouts]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle_since = 0.0
        self._phase = _Phase.HEAD
        self._head = RequestHeadReader(max_bytes=MAX_HEAD_BYTES)
        self._body = BodyReader(Framing.NONE)
        self._is_chunked = False
        self._is_websocket = False
        self._parser_has_request = False
        self._discarded_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._disconnect = DisconnectSignal()
        self.app_state = {**self.app_state, DISCONNECT_SIGNAL: self._disconnect}

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for a response."""
        return self._phase is not _Phase.REQUEST or self.cycle.response_complete

    # Connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn does the same
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._set_deadline(self.timeouts.head_seconds)
        if len(self.connections) > self.timeouts.max_connections:
            self._evict_idle_connection()

    def _evict_idle_connection(self) -> None:
        """Close the connection that has been idle longest; refuse this one when all the others are busy."""
        others = [other for other in self.connections if isinstance(other, StrictHttp) and other is not self]
        idle = [other for other in others if other.is_idle]
        if idle:
            min(idle, key=lambda other: other.idle_since).transport.abort()
        else:
            self._refuse(503, "too many connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        if self._write_deadline is not None:
            self._write_deadline.cancel()
        super().connection_lost(exc)
        self._disconnect.fire()

    def _close(self) -> None:
        """Close once pending output is sent, and at the deadline at the latest."""
        self.transport.close()
        self._set_deadline(self.timeouts.blocked_write_seconds)

    # Input

    def data_received(self, data: bytes) -> None:
        try:
            match self._phase:
                case _Phase.HEAD:
                    self._receive_head(data)
                case _Phase.REQUEST:
                    self._receive_body(data)
                case _Phase.DISCARD:
                    self._discard(len(data))
        except MessageInvalid as invalid:
            self._refuse(invalid.status, invalid.reason)

    def _receive_head(self, data: bytes) -> None:
        is_first_part = not self._head.has_started
        complete = self._head.feed(data)
        if complete is not None:
            head, rest = complete
            request = parse_request(head)
            check_public_request(request)
            self._start_request(request, rest)
        elif is_first_part:
            self._set_deadline(self.timeouts.head_seconds)

    def _start_request(self, request: Request, rest: bytes) -> None:
        self._phase, self._discarded_bytes = _Phase.REQUEST, 0
        self._body = BodyReader(request.framing, request.length)
        self._is_chunked = request.framing is Framing.CHUNKED
        self._is_websocket = _is_viewer_handshake(request)
        self._clear_deadline()
        self._parser_has_request = False
        self.cycle = None  # type: ignore[assignment]  # as uvicorn sets it before the first request
        super().data_received(write_clean_head(request, keep_upgrade=self._is_websocket))
        if rest and self._phase is _Phase.REQUEST:
            self._receive_body(rest)
        if self._phase is _Phase.REQUEST and not self._body.complete:
            self._set_deadline(self.timeouts.body_seconds)

    def _receive_body(self, data: bytes) -> None:
        was_complete = self._body.complete
        content = self._body.feed(data)
        if self._body.unused:
            # A second request before the response to the first may be smuggled. Common clients do not pipeline.
            if self.cycle.response_complete:
                self._close()
                return
            self.cycle.keep_alive = False
        if self.cycle.response_complete:
            self._discard(len(data))
        if not was_complete:
            self._feed_parser(content)
        if self._body.complete and self._phase is _Phase.REQUEST:
            self._clear_deadline()
            # uvicorn pauses reading after a large body. A disconnect goes unnoticed on a paused connection.
            self.flow.resume_reading()
        self._finish_request()

    def _feed_parser(self, content: bytes) -> None:
        if self._is_chunked:
            content = encode_chunk(content) + (LAST_CHUNK if self._body.complete else b"")
        if content:
            super().data_received(content)

    def _discard(self, count: int) -> None:
        self._discarded_bytes += count
        if self._discarded_bytes > MAX_DISCARDED_BYTES:
            self.transport.abort()

    # Output

    def on_response_complete(self) -> None:
        # Replaces uvicorn's method, which starts pipelined requests and a timer of its own. Here there are neither.
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._close()
        else:
            self.flow.resume_reading()
            self._finish_request()

    def _finish_request(self) -> None:
        """Wait for the next request once both the request and its response are complete."""
        if self._phase is not _Phase.REQUEST or not self._body.complete:
            return
        if self.cycle.response_complete and self.cycle.keep_alive:
            self._phase = _Phase.HEAD
            self.idle_since = self.loop.time()
            self._set_deadline(self.timeouts.idle_seconds)

    def _refuse(self, status: int, reason: str) -> None:
        """Answer in place of the application, then discard input until the client closes or the deadline passes."""
        has_cycle = self._phase is _Phase.REQUEST and self.cycle is not None
        self._phase = _Phase.DISCARD
        if has_cycle:
            # The application sees a disconnect, and uvicorn drops its output.
            self.cycle.disconnected = True
            self.cycle.waiting_for_100_continue = False
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return
        self.transport.write(raw_refusal(status, reason))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._set_deadline(self.timeouts.linger_seconds)

    # Callbacks of uvicorn's parser. They check that it reads the request that `http1` read: an exception in a callback
    # is a parser error, which uvicorn answers with `send_400_response`.

    def on_message_begin(self) -> None:
        if self._parser_has_request:
            raise ValueError("the parser found a second request")
        self._parser_has_request = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if bool(self.parser.should_upgrade()) is not self._is_websocket:
            raise ValueError("the parser found another protocol")
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        return self._is_websocket

    def handle_websocket_upgrade(self) -> None:
        # uvicorn now gives the connection to its WebSocket protocol.
        self._clear_deadline()
        self._phase = _Phase.DISCARD
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "not an HTTP/1.1 request")

    # Deadlines

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self._on_deadline)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_deadline(self) -> None:
        if self._is_receiving() and not self.transport.is_closing():
            self._refuse(408, "the request took too long to arrive")
        else:
            self.transport.abort()

    def _is_receiving(self) -> bool:
        """Whether a request has started to arrive and has no response yet."""
        if self._phase is _Phase.HEAD:
            return self._head.has_started
        return self._phase is _Phase.REQUEST and not self.cycle.response_complete

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_deadline = self.loop.call_later(self.timeouts.blocked_write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_deadline is not None:
            self._write_deadline.cancel()


class RefusableWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's protocol, except that an HTTP response in place of the handshake is not logged as an error."""

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True


def check_public_request(request: Request) -> None:
    """Apply the limits of this listener, which serves paths only. Raises: MessageInvalid."""
    if len(request.target) > MAX_TARGET_BYTES:
        raise MessageInvalid("the target is too long", status=414)
    if not request.target.startswith(b"/") or b"#" in request.target:
        raise MessageInvalid("the target is not a path")
    if request.method not in _METHODS:
        raise MessageInvalid("unknown method", status=501)
    if len(request.headers) > MAX_HEADERS:
        raise MessageInvalid("too many headers", status=431)


def write_clean_head(request: Request, *, keep_upgrade: bool) -> bytes:
    """Serialise the head for uvicorn's parser, without an offer of another protocol unless `keep_upgrade`.

    At such an offer the parser stops reading HTTP and takes the body for data of the other protocol.
    """
    fields: list[tuple[bytes, bytes]] = []
    for name, value in request.headers:
        if name.lower() == b"proxy-connection":
            continue  # Not a standard field. The parser treats it like Connection.
        if name.lower() == b"connection" and not keep_upgrade:
            options = (option.strip(b" \t") for option in value.split(b","))
            value = b", ".join(option for option in options if option.lower() != b"upgrade")
        fields.append((name, value))
    return write_head(b"%s %s HTTP/1.1" % (request.method, request.target), fields)


def _is_viewer_handshake(request: Request) -> bool:
    """Whether to switch to WebSocket. Other requests that offer an upgrade are answered as plain HTTP."""
    return (
        request.target.partition(b"?")[0] in SOCKET_PATHS
        and request.is_websocket_handshake
        and all(len(name) + len(b": ") + len(value) <= MAX_HANDSHAKE_LINE_BYTES for name, value in request.headers)
    )
