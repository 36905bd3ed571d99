"""Plain HTTP through the egress proxy: one request to the origin, and its response back."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from browser_shell.egress.connection import CONNECTION_ERRORS, HttpConnection, copy_body
from browser_shell.http1.heads import Framing, Headers, MessageInvalid, Request, Response, parse_response, write_head

_RESPONSE_SECONDS = 300.0
_SMALL_BODY_SECONDS = 1.0
_MAX_SMALL_BYTES = 128 * 1024
_MAX_PIPELINED_BYTES = 64 * 1024
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te upgrade".split()
)
"""Fields for one connection only (RFC 9110 §7.6.1)."""
_WRITTEN_BY_PROXY = frozenset(b"host content-length transfer-encoding trailer".split())
"""Fields that name the host and the end of the body. The proxy writes its own, so that there is one of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A connection to an origin."""

    origin: str
    """Scheme, host and port as the client wrote them."""
    authority: str
    """Host and port of the URL that the policy allowed. It replaces the Host header of requests."""
    connection: HttpConnection


async def exchange(client: HttpConnection, upstream: Upstream, request: Request, path: str) -> bool:
    """Forward a request and its response. Returns whether both connections can be used again.

    Both directions run at the same time: the response may arrive before the upload ends, and the client may disconnect
    before the response arrives.

    Raises: one of CONNECTION_ERRORS.
    """
    origin = upstream.connection
    await origin.send(_request_head(request, path=path, authority=upstream.authority))
    response: Response | None = None
    errors: list[Exception] = []
    is_uploaded = False

    async def upload() -> None:
        nonlocal is_uploaded
        try:
            await copy_body(client, request.framing, request.length, origin)
            is_uploaded = True
            await _wait_for_disconnect(client)
        except CONNECTION_ERRORS as error:
            errors.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(upload)
        try:
            with anyio.fail_after(_RESPONSE_SECONDS):
                response = await _read_response(client, origin, request)
            await _wait_for_small_body(origin, response)
            await client.send(_response_head(response, closes=request.closes))
            await copy_body(origin, response.framing, response.length, client)
        except CONNECTION_ERRORS as error:
            errors.append(error)
        tasks.cancel_scope.cancel()
    if errors:
        raise errors[0]
    if response is None or not is_uploaded:
        raise MessageInvalid("the response was complete before the request")
    # Bytes after the response could be taken for the response to the next request.
    return not (request.closes or response.closes or origin.buffer)


async def _read_response(client: HttpConnection, origin: HttpConnection, request: Request) -> Response:
    """Return the final response. Interim responses are dropped, except a 100 that the client waits for."""
    while True:
        response = parse_response(await origin.read_head(), method=request.method)
        if response.status >= 200:
            return response
        if response.status == 101:
            raise MessageInvalid("the origin switched protocols without a request to do so")
        if response.status == 100 and b"expect" in request.headers:
            await client.send(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _wait_for_small_body(origin: HttpConnection, response: Response) -> None:
    """Give a small body a second to arrive. The browser shows a page as soon as it has the head of the response."""
    if response.framing is Framing.LENGTH and response.length is not None and response.length <= _MAX_SMALL_BYTES:
        with anyio.move_on_after(_SMALL_BODY_SECONDS):
            while len(origin.buffer) < response.length:
                await origin.fill_buffer()


async def _wait_for_disconnect(client: HttpConnection) -> None:
    """Read pipelined requests until the client disconnects. Raises: anyio.EndOfStream."""
    while len(client.buffer) < _MAX_PIPELINED_BYTES:
        await client.fill_buffer()
    await anyio.sleep_forever()


def _request_head(request: Request, *, path: str, authority: str) -> bytes:
    fields = [(b"Host", authority.encode("ascii")), *_end_to_end(request.headers)]
    if request.framing is Framing.CHUNKED:
        fields.append((b"Transfer-Encoding", b"chunked"))
    elif request.framing is Framing.LENGTH:
        fields.append((b"Content-Length", b"%d" % request.length))
    return write_head(b"%s %s HTTP/1.1" % (request.method, path.encode("ascii")), fields)


def _response_head(response: Response, *, closes: bool) -> bytes:
    fields = _end_to_end(response.headers)
    if response.framing in (Framing.CHUNKED, Framing.UNTIL_CLOSE):
        fields.append((b"Transfer-Encoding", b"chunked"))
    elif response.length is not None:
        fields.append((b"Content-Length", b"%d" % response.length))
    if closes:
        fields.append((b"Connection", b"close"))
    return write_head(b"HTTP/1.1 %d %s" % (response.status, response.reason), fields)


def _end_to_end(headers: Headers) -> list[tuple[bytes, bytes]]:
    connection_options = headers.list_members(b"connection") | headers.list_members(b"proxy-connection")
    dropped = _HOP_BY_HOP | _WRITTEN_BY_PROXY | connection_options
    return [(name, value) for name, value in headers if name.lower() not in dropped]
