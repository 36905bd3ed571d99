"""The browser's only way out: an HTTP proxy that speaks CONNECT and plain HTTP, and asks the dialer for everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from browser_shell.core.egress import Requester
from browser_shell.egress.dialer import Dialer, EgressDenied, EgressFailed
from browser_shell.egress.forward import MAX_RESPONSE_HEAD_BYTES, Upstream, exchange, send_simple
from browser_shell.egress.tunnel import join, looks_like_tls
from browser_shell.http1.body import CONNECTION_OVER, Wire
from browser_shell.http1.heads import MessageInvalid, Request, parse_request

log = structlog.get_logger()

_MAX_CONNECTIONS = 384
"""Each may need two file handles, and many systems give a process 1024."""
_MAX_PER_REQUESTER = 128
"""Chromium keeps at most 32 connections and 32 WebSockets to one proxy address open."""
_MAX_HEAD_BYTES = 64 * 1024
_HEAD_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_NOT_IN_AN_AUTHORITY = frozenset("/\\?#@")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_BLOCKED_PAGE = """<!doctype html><meta charset=utf-8><title>Blocked by policy</title>
<body style="font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;padding:0 1em">
<h1>Blocked by policy</h1><p>{reason}</p><p>Rule: <code>{rule}</code></p></body>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressProxy:
    """Serves the listener that lies inside the jail."""

    dialer: Dialer
    requester_at: Callable[[str], Requester | None]
    """Whose proxy address this is: each session dials its own 127.x.y.z, and only the browser itself dials another."""

    async def serve(self, listener: SocketListener) -> None:
        """Until cancelled, or until the listener is gone."""
        room = anyio.Semaphore(_MAX_CONNECTIONS)
        open_now: Counter[Requester | None] = Counter()

        async def handle(client: SocketStream) -> None:
            try:
                async with client:
                    await self._serve_counted(client, open_now)
            finally:
                room.release()

        async with listener, anyio.create_task_group() as tasks:
            while True:
                # Whoever finds no room waits in the kernel's queue and costs nothing here.
                await room.acquire()
                tasks.start_soon(handle, await _accept(listener))

    async def _serve_counted(self, client: SocketStream, open_now: Counter[Requester | None]) -> None:
        address = client.extra(SocketAttribute.local_address)  # noqa: S610  no Django here
        requester = self.requester_at(str(address[0]))
        if open_now[requester] >= _MAX_PER_REQUESTER:
            log.warning("egress_connections_at_limit", session_id=requester.session_id if requester else "")
            return
        open_now[requester] += 1
        try:
            await self._serve_client(client, requester)
        except CONNECTION_OVER:
            return
        finally:
            open_now[requester] -= 1
            if not open_now[requester]:
                del open_now[requester]

    async def _serve_client(self, stream: SocketStream, requester: Requester | None) -> None:
        client = Wire(stream, max_head_bytes=_MAX_HEAD_BYTES)
        upstream: Upstream | None = None
        try:
            while True:
                with anyio.fail_after(_HEAD_SECONDS):
                    request = await self._next_request(client)
                if request is None:
                    return
                if requester is None:
                    # The browser's own calls home. Nobody asked for them, so nobody is told.
                    await send_simple(client, 403, "Forbidden")
                    return
                if request.method == b"CONNECT":
                    await self._tunnel(client, requester, request)
                    return
                upstream = await self._forward(client, requester, request, upstream)
                if upstream is None:
                    return
        finally:
            if upstream is not None:
                await upstream.wire.stream.aclose()

    async def _next_request(self, client: Wire) -> Request | None:
        """None when it makes no sense; then the client has been told. Raises: anyio.EndOfStream when there is none."""
        try:
            request = parse_request(await client.head())
        except MessageInvalid as nonsense:
            await send_simple(client, nonsense.status, "Not HTTP")
            return None
        if not _asks_a_proxy(request):
            await send_simple(client, 400, "This is a proxy")
            return None
        return request

    async def _tunnel(self, client: Wire, requester: Requester, request: Request) -> None:
        try:
            dialled = await self.dialer.dial(requester, f"https://{request.target}/")
        except EgressDenied as denied:
            await self._say_blocked(client, denied)
            return
        except EgressFailed:
            await send_simple(client, 502, "Bad Gateway")
            return
        async with dialled.stream as server:
            await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._join_if_allowed(client, server, requester, request)

    async def _join_if_allowed(
        self, client: Wire, server: SocketStream, requester: Requester, request: Request
    ) -> None:
        if not client.ahead:
            with anyio.fail_after(_HEAD_SECONDS):
                await client.read_more()
        if not looks_like_tls(client.ahead):
            # ws:// comes as a tunnel too. The scheme shows only now, and a policy may forbid the plain one.
            try:
                await self.dialer.check_plain(requester, f"http://{request.target}/")
            except EgressDenied:
                return  # Inside a tunnel there is no way left to say so.
        await server.send(client.ahead)
        await join(client.stream, server)

    async def _forward(
        self, client: Wire, requester: Requester, request: Request, upstream: Upstream | None
    ) -> Upstream | None:
        """One plain request. Returns the connection to use again, or None when this one must end."""
        origin, path = _split(request.target)
        if upstream is None or upstream.origin != origin:
            if upstream is not None:
                await upstream.wire.stream.aclose()
            try:
                dialled = await self.dialer.dial(requester, f"{origin}/")
            except EgressDenied as denied:
                await self._say_blocked(client, denied)
                return None
            except EgressFailed:
                # Without a body the browser calls it a failure; with one it would be a page like any other.
                await send_simple(client, 502, "Bad Gateway")
                return None
            wire = Wire(dialled.stream, max_head_bytes=MAX_RESPONSE_HEAD_BYTES)
            upstream = Upstream(origin=origin, authority=urlsplit(dialled.target.href).netloc, wire=wire)
        reusable = False
        try:
            reusable = await exchange(client, upstream, request, path)
        finally:
            if not reusable:
                await upstream.wire.stream.aclose()
        return upstream if reusable else None

    async def _say_blocked(self, client: Wire, denied: EgressDenied) -> None:
        decision = denied.decision
        page = _BLOCKED_PAGE.format(reason=as_text(decision.reason), rule=as_text(decision.rule_id))
        await send_simple(client, 403, "Blocked by policy", page.encode(), "text/html; charset=utf-8")


def as_text(words: str) -> str:
    """For between two tags. As `html.escape` has it, without the list of 2231 entities that comes with it."""
    return words.translate(_ENTITIES)


async def _accept(listener: SocketListener) -> SocketStream:
    while True:
        try:
            return await listener.accept()
        except OSError as fault:
            # No file handle left, or a client that went away in the queue: neither is a reason to end.
            log.warning("egress_accept_failed", reason=fault.strerror)
            await anyio.sleep(_PAUSE_SECONDS)


def _asks_a_proxy(request: Request) -> bool:
    """Whether the target has the form that RFC 9112 section 3.2 wants: authority with a port, or a full http URL."""
    if request.method == b"CONNECT":
        return request.target.rpartition(":")[2].isdigit() and not _NOT_IN_AN_AUTHORITY & set(request.target)
    return request.target.lower().startswith("http://")


def _split(url: str) -> tuple[str, str]:
    """`http://host:port/path?query` as origin and path; the dialer judges the origin's parts."""
    rest = url[len("http://") :]
    cut = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    path = rest[cut:].partition("#")[0]
    return f"http://{rest[:cut]}", path if path.startswith("/") else f"/{path}"
