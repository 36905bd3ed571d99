"""The browser's only way to the network: an HTTP proxy for CONNECT and plain HTTP.

Each connection that a client asks for goes through the dialer, which applies the policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from browser_shell.core.egress import Requester
from browser_shell.egress.connection import CONNECTION_ENDED, HttpConnection, join_streams
from browser_shell.egress.dialer import Dialer, Dialled, EgressDenied, EgressFailed
from browser_shell.egress.forward import MAX_RESPONSE_HEAD_BYTES, Upstream, exchange
from browser_shell.http1.heads import (
    MessageInvalid,
    Request,
    RequestHeadReader,
    ResponseHeadReader,
    parse_request,
    write_final_response,
)

log = structlog.get_logger()

_MAX_CONNECTIONS = 384
"""Each may need two file descriptors, and many systems limit a process to 1024."""
_MAX_CONNECTIONS_PER_SESSION = 128
"""Chromium opens at most 32 connections and 32 WebSockets to one proxy address."""
_MAX_REQUEST_HEAD_BYTES = 64 * 1024
_HEAD_SECONDS = 60.0
_LINGER_SECONDS = 1.0
_ACCEPT_RETRY_SECONDS = 0.1
_TLS_HANDSHAKE = b"\x16"
_NOT_IN_AN_AUTHORITY = frozenset("/\\?#@")
_BLOCKED_PAGE = """<!doctype html><meta charset=utf-8><title>Blocked by policy</title>
<body style="font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;padding:0 1em">
<h1>Blocked by policy</h1><p>{reason}</p><p>Rule: <code>{rule}</code></p></body>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressProxy:
    """Serves the listener inside the jail."""

    dialer: Dialer
    requester_at: Callable[[str], Requester | None]
    """Find the session by the address that was dialled: each session has its own 127.x.y.z. None for an address
    without a session, which only the browser's own background requests use."""

    async def serve(self, listener: SocketListener) -> None:
        """Serve until cancelled."""
        free_connections = anyio.Semaphore(_MAX_CONNECTIONS)
        open_connections: Counter[Requester | None] = Counter()

        async def handle(client: SocketStream) -> None:
            try:
                async with client:
                    await self._serve_connection(client, open_connections)
            finally:
                free_connections.release()

        async with listener, anyio.create_task_group() as tasks:
            while True:
                # Connections above the limit wait in the kernel's backlog.
                await free_connections.acquire()
                tasks.start_soon(handle, await _accept(listener))

    async def _serve_connection(self, stream: SocketStream, open_connections: Counter[Requester | None]) -> None:
        address = stream.extra(SocketAttribute.local_address)  # noqa: S610  # anyio's method, not Django's
        requester = self.requester_at(str(address[0]))
        if open_connections[requester] >= _MAX_CONNECTIONS_PER_SESSION:
            log.warning("egress_connection_limit_reached", session_id=requester.session_id if requester else "")
            return
        open_connections[requester] += 1
        client = HttpConnection(stream, RequestHeadReader(max_bytes=_MAX_REQUEST_HEAD_BYTES))
        try:
            await self._serve_requests(client, requester)
        except CONNECTION_ENDED:
            return
        finally:
            open_connections[requester] -= 1
            if not open_connections[requester]:
                del open_connections[requester]

    async def _serve_requests(self, client: HttpConnection, requester: Requester | None) -> None:
        upstream: Upstream | None = None
        try:
            while True:
                with anyio.fail_after(_HEAD_SECONDS):
                    request = await _read_request(client)
                if request is None:
                    return
                if requester is None:
                    # Background requests of the browser belong to no session. They are refused without a record.
                    await _respond(client, 403, "Forbidden")
                    return
                if request.method == b"CONNECT":
                    await self._tunnel(client, requester, request)
                    return
                upstream = await self._forward(client, requester, request, upstream)
                if upstream is None:
                    return
        finally:
            if upstream is not None:
                await upstream.connection.stream.aclose()

    async def _tunnel(self, client: HttpConnection, requester: Requester, request: Request) -> None:
        authority = request.target.decode("ascii")
        server = await self._dial(client, requester, f"https://{authority}/")
        if server is None:
            return
        async with server.stream as stream:
            await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            if not client.buffer:
                with anyio.fail_after(_HEAD_SECONDS):
                    await client.fill_buffer()
            if not client.buffer.startswith(_TLS_HANDSHAKE):
                # Browsers send ws:// through a tunnel too. Only its first bytes show that it is not encrypted.
                try:
                    await self.dialer.check_plaintext_tunnel(requester, f"http://{authority}/")
                except EgressDenied:
                    return  # There is no way to send a refusal inside a tunnel.
            await stream.send(client.take_buffer())
            await join_streams(client.stream, stream)

    async def _forward(
        self, client: HttpConnection, requester: Requester, request: Request, upstream: Upstream | None
    ) -> Upstream | None:
        """Forward one plain request. Returns the connection for the next one, or None to close the client's."""
        origin, path = _split_url(request.target.decode("ascii"))
        if upstream is None or upstream.origin != origin:
            if upstream is not None:
                await upstream.connection.stream.aclose()
            server = await self._dial(client, requester, f"{origin}/")
            if server is None:
                return None
            upstream = Upstream(
                origin=origin,
                authority=urlsplit(server.target.href).netloc,
                connection=HttpConnection(server.stream, ResponseHeadReader(max_bytes=MAX_RESPONSE_HEAD_BYTES)),
            )
        is_reusable = False
        try:
            is_reusable = await exchange(client, upstream, request, path)
        finally:
            if not is_reusable:
                await upstream.connection.stream.aclose()
        return upstream if is_reusable else None

    async def _dial(self, client: HttpConnection, requester: Requester, url: str) -> Dialled | None:
        """Connect to the host of `url`. Returns None after a refusal or failure, with the response already sent."""
        try:
            return await self.dialer.dial(requester, url)
        except EgressDenied as denied:
            decision = denied.decision
            page = _BLOCKED_PAGE.format(reason=escape(decision.reason), rule=escape(decision.rule_id))
            await _respond(client, 403, "Blocked by policy", page.encode(), "text/html; charset=utf-8")
        except EgressFailed:
            # The empty body makes the browser report a failed navigation instead of showing a page.
            await _respond(client, 502, "Bad Gateway")
        return None


async def _accept(listener: SocketListener) -> SocketStream:
    while True:
        try:
            return await listener.accept()
        except OSError as error:
            # No file descriptor is free, or the client left the backlog. Both are temporary.
            log.warning("egress_accept_failed", reason=error.strerror)
            await anyio.sleep(_ACCEPT_RETRY_SECONDS)


async def _read_request(client: HttpConnection) -> Request | None:
    """Read the next request. Returns None when it was invalid and a response has been sent.

    Raises: anyio.EndOfStream when the client has closed the connection.
    """
    try:
        request = parse_request(await client.read_head())
    except MessageInvalid as invalid:
        await _respond(client, invalid.status, "Invalid request")
        return None
    if not _has_proxy_target(request):
        await _respond(client, 400, "This is a proxy")
        return None
    return request


def _has_proxy_target(request: Request) -> bool:
    """Whether the target has the form for a proxy: host and port, or an absolute URL (RFC 9112 §3.2)."""
    target = request.target.decode("ascii")
    if request.method == b"CONNECT":
        return target.rpartition(":")[2].isdigit() and not _NOT_IN_AN_AUTHORITY & set(target)
    return target.lower().startswith("http://")


def _split_url(url: str) -> tuple[str, str]:
    """Split an http URL into its origin and the target for the origin, without the fragment."""
    rest = url[len("http://") :]
    end = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    path = rest[end:].partition("#")[0]
    return f"http://{rest[:end]}", path if path.startswith("/") else f"/{path}"


async def _respond(
    client: HttpConnection, status: int, reason: str, body: bytes = b"", content_type: str = "text/plain"
) -> None:
    """Send a response of the proxy itself, and end the connection."""
    headers = {"Content-Type": content_type, "Cache-Control": "no-store"}
    await client.send(write_final_response(status, reason, headers, body))
    # Closing a socket with unread input resets the connection, and the client would lose the response.
    await client.stream.send_eof()
    with anyio.move_on_after(_LINGER_SECONDS):
        while True:
            await client.stream.receive()
