"""Plain HTTP through the proxy: one request to the origin, its response back, both connections kept for the next."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import h11
from anyio.abc import SocketStream

_CHUNK_BYTES = 256 * 1024
_ANSWER_SECONDS = 300.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A connection to one origin."""

    origin: str
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


async def exchange(
    client: SocketStream, inbound: h11.Connection, upstream: Upstream, request: h11.Request, path: str
) -> Upstream | None:
    """Sends the request on and the response back. Returns the upstream if both sides can go on."""
    outbound = h11.Connection(h11.CLIENT, max_incomplete_event_size=256 * 1024)
    sent = h11.Request(method=request.method, target=path.encode("ascii"), headers=_end_to_end(request.headers))
    await _send(upstream.stream, outbound, sent)
    await _copy_body(client, inbound, upstream.stream, outbound)
    while True:
        with anyio.fail_after(_ANSWER_SECONDS):
            event = await _next_event(upstream.stream, outbound)
        if isinstance(event, h11.InformationalResponse):
            continue
        break
    if not isinstance(event, h11.Response):
        raise h11.RemoteProtocolError("the origin sent no response")
    response = h11.Response(status_code=event.status_code, headers=_end_to_end(event.headers), reason=event.reason)
    await _send(client, inbound, response)
    await _copy_body(upstream.stream, outbound, client, inbound)
    both_idle = outbound.our_state is h11.DONE and outbound.their_state is h11.DONE
    client_idle = inbound.our_state is h11.DONE and inbound.their_state is h11.DONE
    if both_idle and client_idle:
        return upstream
    await upstream.stream.aclose()
    return None


def _end_to_end(headers: h11._headers.Headers) -> list[tuple[bytes, bytes]]:
    named = {token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")}
    return [(name, value) for name, value in headers.raw_items() if name.lower() not in _HOP_BY_HOP | named]


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
