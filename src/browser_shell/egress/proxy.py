"""The browser's only way out: an HTTP proxy that speaks CONNECT and plain HTTP, and asks the dialer for everything."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import h11
import structlog
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from browser_shell.core.egress import Requester
from browser_shell.egress.dialer import Dialer, EgressDenied, EgressFailed
from browser_shell.egress.forward import Upstream, exchange, read_head, send_simple
from browser_shell.egress.tunnel import join, looks_like_tls

log = structlog.get_logger()

_MAX_CONNECTIONS = 512
_HEAD_SECONDS = 60.0
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

        async def handle(client: SocketStream) -> None:
            async with room, client:
                await self._serve_client(client)

        await listener.serve(handle)

    async def _serve_client(self, client: SocketStream) -> None:
        address = client.extra(SocketAttribute.local_address)  # noqa: S610  no Django here
        requester = self.requester_at(str(address[0]))
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
        upstream: Upstream | None = None
        try:
            while True:
                with anyio.fail_after(_HEAD_SECONDS):
                    request = await read_head(client, connection)
                if request is None:
                    return
                if requester is None:
                    # The browser's own calls home. Nobody asked for them, so nobody is told.
                    await send_simple(client, connection, 403, "text/plain", b"")
                    return
                if request.method == b"CONNECT":
                    await self._tunnel(client, connection, requester, request)
                    return
                upstream = await self._forward(client, connection, requester, request, upstream)
                if upstream is None:
                    return
                connection.start_next_cycle()
        except (h11.ProtocolError, OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError):
            return  # The peer went away or spoke nonsense; either way this connection is over.
        finally:
            if upstream is not None:
                await upstream.stream.aclose()

    async def _tunnel(
        self, client: SocketStream, connection: h11.Connection, requester: Requester, request: h11.Request
    ) -> None:
        try:
            server = await self.dialer.dial(requester, f"https://{request.target.decode('ascii', 'replace')}/")
        except EgressDenied as denied:
            await self._say_blocked(client, connection, denied)
            return
        except EgressFailed:
            await send_simple(client, connection, 502, "text/plain", b"")
            return
        async with server:
            answer = h11.Response(status_code=200, headers=[], reason=b"Connection established")
            await client.send(connection.send(answer) or b"")
            await self._join_if_allowed(client, connection, server, requester, request)

    async def _join_if_allowed(
        self,
        client: SocketStream,
        connection: h11.Connection,
        server: SocketStream,
        requester: Requester,
        request: h11.Request,
    ) -> None:
        first, _ = connection.trailing_data
        first = bytes(first) or await client.receive()
        if not looks_like_tls(first):
            # ws:// comes as a tunnel too. The scheme shows only now, and a policy may forbid the plain one.
            authority = request.target.decode("ascii", "replace")
            await self.dialer.check_plain(requester, f"http://{authority}/")
        await server.send(first)
        await join(client, server)

    async def _forward(
        self,
        client: SocketStream,
        connection: h11.Connection,
        requester: Requester,
        request: h11.Request,
        upstream: Upstream | None,
    ) -> Upstream | None:
        """One plain request. Returns the connection to use again, or None when this one must end."""
        url = request.target.decode("ascii", "replace")
        try:
            if not url.lower().startswith("http://"):
                raise h11.RemoteProtocolError("not a proxy request")
            origin, path = _split(url)
            if upstream is None or upstream.origin != origin:
                if upstream is not None:
                    await upstream.stream.aclose()
                upstream = Upstream(origin=origin, stream=await self.dialer.dial(requester, f"{origin}/"))
            return await exchange(client, connection, upstream, request, path)
        except EgressDenied as denied:
            await self._say_blocked(client, connection, denied)
        except EgressFailed as failed:
            await send_simple(client, connection, 502, "text/plain", str(failed).encode())
        return None

    async def _say_blocked(self, client: SocketStream, connection: h11.Connection, denied: EgressDenied) -> None:
        decision = denied.decision
        page = _BLOCKED_PAGE.format(reason=html.escape(decision.reason), rule=html.escape(decision.rule_id))
        await send_simple(client, connection, 403, "text/html; charset=utf-8", page.encode())


def _split(url: str) -> tuple[str, str]:
    """`http://host:port/path?query` as origin and path; the dialer judges the origin's parts."""
    rest = url[len("http://") :]
    cut = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    path = rest[cut:].partition("#")[0]
    return f"http://{rest[:cut]}", path if path.startswith("/") else f"/{path}"
