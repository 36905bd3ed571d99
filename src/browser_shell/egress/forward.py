"""Plain HTTP through the proxy: one request to the origin, its response back, both connections kept for the next."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import h11
from anyio.abc import SocketStream

CONNECTION_OVER = (
    h11.ProtocolError,
    OSError,
    TimeoutError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)
"""The peer went away, spoke nonsense or fell asleep; either way its connection is of no more use."""

_CHUNK_BYTES = 256 * 1024
_ANSWER_SECONDS = 300.0
_LINGER_SECONDS = 1.0
_MOST_PIPELINED_BYTES = 64 * 1024
# Between two hops only; RFC 9110 section 7.6.1. The rest of a message is the origin's and the browser's business.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"proxy-connection",
        b"proxy-authorization",
        b"proxy-authenticate",
        b"keep-alive",
        b"te",
        b"upgrade",
    }
)
# What a `Connection` header may not take away: the message would then mean something else.
_ESSENTIAL = frozenset({b"host", b"content-length", b"transfer-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A connection to one origin."""

    origin: str
    authority: str
    """Host and port as the judged URL has them: what the origin is told, whatever the request's own Host says."""
    stream: SocketStream


async def read_head(stream: SocketStream, connection: h11.Connection) -> h11.Request | None:
    """The next request; None when the peer has no more. Raises: h11.ProtocolError."""
    event = await _next_event(stream, connection)
    return event if isinstance(event, h11.Request) else None


async def send_simple(
    client: SocketStream, connection: h11.Connection, status: int, content_type: str, body: bytes
) -> None:
    """A whole response of our own, after which the connection ends."""
    headers = [
        ("Content-Type", content_type),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
    ]
    response = h11.Response(status_code=status, headers=headers)
    parts = [connection.send(response), connection.send(h11.Data(data=body)), connection.send(h11.EndOfMessage())]
    await client.send(b"".join(part for part in parts if part))
    # Closing with unread bytes of a request body would reset the connection, and the answer would be lost with it.
    await client.send_eof()
    with anyio.move_on_after(_LINGER_SECONDS):
        while True:
            await client.receive(_CHUNK_BYTES)


async def exchange(
    client: SocketStream, inbound: h11.Connection, upstream: Upstream, request: h11.Request, path: str
) -> bool:
    """Sends the request on and the response back. Returns whether both connections can go on.

    Raises: one of CONNECTION_OVER.
    """
    outbound = h11.Connection(h11.CLIENT, max_incomplete_event_size=256 * 1024)
    headers = [(b"Host", upstream.authority.encode("ascii")), *_request_headers(request.headers)]
    sent = h11.Request(method=request.method, target=path.encode("ascii"), headers=headers)
    await _send(upstream.stream, outbound, sent)
    faults: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def upload() -> None:
            try:
                await _copy_body(client, inbound, upstream.stream, outbound)
                await _watch(client, inbound)
            except CONNECTION_OVER as fault:
                faults.append(fault)
                tasks.cancel_scope.cancel()

        tasks.start_soon(upload)
        try:
            await _return_response(client, inbound, upstream.stream, outbound)
        except CONNECTION_OVER as fault:
            faults.append(fault)
        tasks.cancel_scope.cancel()
    if faults:
        raise faults[0]
    states = (outbound.our_state, outbound.their_state, inbound.our_state, inbound.their_state)
    return all(state is h11.DONE for state in states)


async def _return_response(
    client: SocketStream, inbound: h11.Connection, origin: SocketStream, outbound: h11.Connection
) -> None:
    while True:
        with anyio.fail_after(_ANSWER_SECONDS):
            event = await _next_event(origin, outbound)
        if not isinstance(event, h11.InformationalResponse):
            break
        if event.status_code == 100 and inbound.they_are_waiting_for_100_continue:
            await _send(client, inbound, h11.InformationalResponse(status_code=100, headers=[]))
    if not isinstance(event, h11.Response):
        raise h11.RemoteProtocolError("the origin sent no response")
    response = h11.Response(status_code=event.status_code, headers=_end_to_end(event.headers), reason=event.reason)
    await _send(client, inbound, response)
    await _copy_body(origin, outbound, client, inbound)


def _request_headers(headers: h11._headers.Headers) -> list[tuple[bytes, bytes]]:
    """Without Host, which is ours to say, and with one length: an origin might believe the other one."""
    chunked = any(name == b"transfer-encoding" for name, _ in headers)
    dropped = {b"host", b"content-length"} if chunked else {b"host"}
    return [(name, value) for name, value in _end_to_end(headers) if name.lower() not in dropped]


def _end_to_end(headers: h11._headers.Headers) -> list[tuple[bytes, bytes]]:
    named = {token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")}
    dropped = _HOP_BY_HOP | (named - _ESSENTIAL)
    return [(name, value) for name, value in headers.raw_items() if name.lower() not in dropped]


async def _watch(client: SocketStream, inbound: h11.Connection) -> None:
    """Notices a browser that no longer wants the answer: its place is free for another connection."""
    early_bytes = 0
    while early_bytes < _MOST_PIPELINED_BYTES:
        part = await client.receive(_CHUNK_BYTES)
        early_bytes += len(part)
        inbound.receive_data(part)
    await anyio.sleep_forever()


async def _copy_body(source: SocketStream, reader: h11.Connection, sink: SocketStream, writer: h11.Connection) -> None:
    while True:
        with anyio.fail_after(_ANSWER_SECONDS):
            event = await _next_event(source, reader)
        if isinstance(event, h11.Data):
            await _send(sink, writer, h11.Data(data=bytes(event.data)))
        elif isinstance(event, h11.EndOfMessage):
            await _send(sink, writer, h11.EndOfMessage(headers=event.headers))
            return
        else:
            raise h11.RemoteProtocolError("the peer left in the middle of a message")


async def _send(stream: SocketStream, connection: h11.Connection, event: h11.Event) -> None:
    data = connection.send(event)
    if data:
        with anyio.fail_after(_ANSWER_SECONDS):
            await stream.send(data)


async def _next_event(stream: SocketStream, connection: h11.Connection) -> h11.Event | None:
    """The next event; None when the peer wants to go on before this exchange is over."""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Event):
            return event
        if event is h11.PAUSED:
            return None
        try:
            connection.receive_data(await stream.receive(_CHUNK_BYTES))
        except anyio.EndOfStream:
            connection.receive_data(b"")
