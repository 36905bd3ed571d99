"""The browser's only way to the network: an HTTP proxy for CONNECT and plain HTTP.

Each connection that a client asks for goes through the dialer, which applies the policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from browser_shell.core.decisions import NO_ANSWER_RULE, Requester
from browser_shell.egress.connection import CONNECTION_ERRORS, HttpConnection, join_streams
from browser_shell.egress.dialer import Dialer, Dialled, EgressDenied, EgressFailed
from browser_shell.egress.forward import Upstream, exchange
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
_MAX_RESPONSE_HEAD_BYTES = 256 * 1024
_HEAD_SECONDS = 60.0
_LINGER_SECONDS = 1.0
_ACCEPT_RETRY_SECONDS = 0.1
_TLS_HANDSHAKE = b"\x16"
_NOT_IN_AN_AUTHORITY = frozenset("/\\?#@")
_REFUSAL_PAGE = """<!doctype html><meta charset=utf-8><title>{title}</title>
<body style="font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;padding:0 1em">
<h1>{title}</h1><p>{reason}</p><p>Rule: <code>{rule}</code></p></body>
"""


class _Refused(Exception):
    """A request that the proxy answers itself, and after which it ends the connection."""

    def __init__(self, status: int, reason: str, page: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.page = status, reason, page


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
            with suppress(*CONNECTION_ERRORS):
                try:
                    await self._serve_requests(client, requester)
                except _Refused as refused:
                    await _send_refusal(client, refused)
        finally:
            open_connections[requester] -= 1
            if not open_connections[requester]:
                del open_connections[requester]

    async def _serve_requests(self, client: HttpConnection, requester: Requester | None) -> None:
        """Serve the requests of one connection. Raises: _Refused, or one of CONNECTION_ERRORS."""
        upstream: Upstream | None = None
        try:
            while True:
                with anyio.fail_after(_HEAD_SECONDS):
                    request = await _read_request(client)
                target = request.target.decode("ascii")
                if requester is None:
                    # Background requests of the browser belong to no session. They are refused without a record.
                    raise _Refused(403, "Forbidden")
                if request.method == b"CONNECT":
                    await self._tunnel(client, requester, target)
                    return
                origin, path = _split_url(target)
                if upstream is None or upstream.origin != origin:
                    if upstream is not None:
                        await upstream.connection.stream.aclose()
                    upstream = await self._connect_to_origin(requester, origin)
                if not await exchange(client, upstream, request, path):
                    return
        finally:
            if upstream is not None:
                await upstream.connection.stream.aclose()

    async def _tunnel(self, client: HttpConnection, requester: Requester, authority: str) -> None:
        dialled = await self._dial(requester, f"https://{authority}/")
        async with dialled.stream as server:
            await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            if not client.buffer:
                with anyio.fail_after(_HEAD_SECONDS):
                    await client.fill_buffer()
            if not client.buffer.startswith(_TLS_HANDSHAKE):
                # Browsers send ws:// through a tunnel too. Only its first byte shows that it is not encrypted.
                try:
                    await self.dialer.check_plaintext_tunnel(requester, f"http://{authority}/")
                except EgressDenied:
                    return  # There is no way to send a refusal inside a tunnel.
            await server.send(client.take_buffer())
            await join_streams(client.stream, server)

    async def _connect_to_origin(self, requester: Requester, origin: str) -> Upstream:
        dialled = await self._dial(requester, f"{origin}/")
        return Upstream(
            origin=origin,
            authority=urlsplit(dialled.target.href).netloc,
            connection=HttpConnection(dialled.stream, ResponseHeadReader(max_bytes=_MAX_RESPONSE_HEAD_BYTES)),
        )

    async def _dial(self, requester: Requester, url: str) -> Dialled:
        try:
            return await self.dialer.dial(requester, url)
        except EgressDenied as denied:
            decision = denied.decision
            title = "Host not found" if decision.rule_id == NO_ANSWER_RULE else "Blocked by policy"
            page = _REFUSAL_PAGE.format(title=title, reason=escape(decision.reason), rule=escape(decision.rule_id))
            raise _Refused(403, title, page) from denied
        except EgressFailed as failed:
            # The empty body makes the browser report a failed navigation instead of showing a page.
            raise _Refused(502, "Bad Gateway") from failed


async def _accept(listener: SocketListener) -> SocketStream:
    while True:
        try:
            return await listener.accept()
        except OSError as error:
            # No file descriptor is free, or the client has closed the connection again. Both are temporary.
            log.warning("egress_accept_failed", reason=error.strerror)
            await anyio.sleep(_ACCEPT_RETRY_SECONDS)


async def _read_request(client: HttpConnection) -> Request:
    """Raises: _Refused, or anyio.EndOfStream when the client has closed the connection."""
    try:
        request = parse_request(await client.read_head())
    except MessageInvalid as invalid:
        raise _Refused(invalid.status, "Invalid request") from invalid
    if not _has_proxy_target(request):
        raise _Refused(400, "Not a proxy request")
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


async def _send_refusal(client: HttpConnection, refused: _Refused) -> None:
    headers = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"}
    await client.send(write_final_response(refused.status, refused.reason, headers, refused.page.encode()))
    # Closing a socket with unread input resets the connection, and the client would lose the response.
    await client.stream.send_eof()
    with anyio.move_on_after(_LINGER_SECONDS):
        while True:
            await client.stream.receive()
