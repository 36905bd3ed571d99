"""The one public port, read top to bottom: what exists, for whom, how much, and only then the part behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

import anyio
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from browser_shell.asgi.request_headers import request_headers
from browser_shell.asgi.request_limits import RequestLimits
from browser_shell.asgi.responses import guarded, refusal
from browser_shell.core.access import TicketGrant, ViewMode
from browser_shell.core.calls import Principal
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.http.routes import Area, TrustedHosts, match_route, offers
from browser_shell.http.tokens import Authenticator, AuthFailure
from browser_shell.mcp_server.json_rpc import MAX_MESSAGE_BYTES
from browser_shell.ops.metrics import Metrics
from browser_shell.policy.document import ViewingSection
from browser_shell.viewer import tickets as ticket_limits
from browser_shell.viewer.tickets import TicketEndpoint, Tickets, ticket_in, without_ticket

_MAX_BODY = {Area.MCP: MAX_MESSAGE_BYTES, Area.TICKETS: ticket_limits.MAX_BODY_BYTES}
_UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
_PREFLIGHT_SECONDS = 600
_PREFLIGHT_HEADERS = (
    "Authorization, Content-Type, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"
)


class RunningApp(Protocol):
    """An ASGI application that serves only inside `run()`."""

    def run(self) -> AbstractAsyncContextManager[None]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """An ASGI application. Behind it, `scope["state"]` has the `principal`, or for a socket the `grant`."""

    mcp: RunningApp
    desk: TicketEndpoint
    viewer: ASGIApp | None
    """None while there is nothing to watch: its paths then do not exist."""
    callers: Authenticator
    neighbours: TrustedHosts
    tickets: Tickets
    viewing: ViewingSection
    traffic: RequestLimits
    audit: AuditLog
    clock: Clock
    metrics: Metrics = field(default_factory=Metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await Router(lifespan=self._lifespan)(scope, receive, send)
            return
        headers = request_headers(scope)
        sending = guarded(send, self._grants(scope, headers))
        refused = self._judge_edge(scope, headers)
        if refused is not None:
            self.metrics.record_denial(refused.status_code)
            await refused(scope, receive, sending)
        elif scope["type"] == "websocket":
            await self._socket(scope, headers, receive, sending)
        else:
            await self._request(scope, headers, receive, sending)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async with self.mcp.run():
            yield

    # What anyone may know: no credential has been looked at.

    def _judge_edge(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        area = self._area(scope)
        preflight = _is_preflight(scope, headers) and area in (Area.MCP, Area.TICKETS)
        if area is None or not (preflight or offers(area, scope.get("method", "GET"))):
            return refusal(403, "Forbidden")
        if not self.neighbours.knows_host(headers.get("host", "")):
            return refusal(403, "this server does not answer to that Host; see PUBLIC_HOSTS")
        origin = headers.get("origin")
        if origin is not None and not self.neighbours.trusts_origin(origin, host=headers["host"]):
            return refusal(403, "pages of that Origin may not; see ALLOWED_ORIGINS")
        if preflight:
            return Response(status_code=204)
        if scope["type"] != "websocket" and (area is Area.SOCKET or (area is Area.VIEWER and "upgrade" in headers)):
            return refusal(426, "a WebSocket of version 13 is here, asked for in full", _UPGRADE)
        return None

    def _area(self, scope: Scope) -> Area | None:
        area = match_route(scope["raw_path"])
        if area in (Area.VIEWER, Area.SOCKET) and self.viewer is None:
            return None
        return area

    def _grants(self, scope: Scope, headers: Mapping[str, str]) -> Mapping[str, str]:
        """For a page of a listed origin, and for nobody else, the leave to read the answer."""
        origin = headers.get("origin")
        if origin is None or origin not in self.neighbours.origins:
            return {}
        granted = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if not _is_preflight(scope, headers):
            return {**granted, "Access-Control-Expose-Headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After"}
        return {
            **granted,
            "Access-Control-Allow-Methods": "GET, POST, DELETE",
            "Access-Control-Allow-Headers": _PREFLIGHT_HEADERS,
            "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
        }

    # Who asks.

    async def _request(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        area = self._area(scope)
        if area is Area.VIEWER and self.viewer is not None:
            await self._page(self.viewer, scope, receive, send)
            return
        caller = self._identify(scope, headers)
        refused = self._judge_caller(caller) or _judge_body(scope, headers, _MAX_BODY[area or Area.TICKETS])
        if refused is not None or isinstance(caller, AuthFailure):
            await self._deny(refused, scope, receive, send)
            return
        scope = {**scope, "state": {**scope.get("state", {}), "principal": caller}}
        with self.traffic.request_of(caller.subject):
            if scope["method"] == "POST":
                app = self.desk if area is Area.TICKETS else self.mcp
                await self._with_body(app, _MAX_BODY[area or Area.TICKETS], scope, receive, send)
            else:
                await self._until_expiry(caller, scope, receive, send)

    async def _page(self, viewer: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pages and their files hold no secret and need no credential; a bad ticket is said at once all the same."""
        ticket = ticket_in(scope["query_string"])
        if ticket is not None and not self.tickets.is_valid(ticket):
            await self._deny(_unauthorised(_BAD_TICKET), scope, receive, send)
            return
        await viewer(scope, receive, send)

    def _identify(self, scope: Scope, headers: Mapping[str, str]) -> Principal | AuthFailure:
        # A ticket opens a socket and nothing else, and whoever shows one is judged by it alone.
        if ticket_in(scope["query_string"]) is not None:
            return AuthFailure("a ticket is not good for this")
        return self.callers.identify(headers.get("authorization"))

    def _judge_caller(self, caller: Principal | AuthFailure) -> Response | None:
        if isinstance(caller, AuthFailure):
            return _unauthorised(caller)
        seconds = self.traffic.admit(caller.subject)
        if seconds > 0:
            return refusal(429, "too many requests", {"Retry-After": str(ceil(seconds))})
        return None

    async def _deny(self, refused: Response | None, scope: Scope, receive: Receive, send: Send) -> None:
        answer = refused or refusal(403, "Forbidden")
        self.metrics.record_denial(answer.status_code)
        await answer(scope, receive, send)

    # What is done for them.

    async def _with_body(self, app: ASGIApp, most_bytes: int, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # The client went away in the middle of its request; there is nobody to answer.
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most_bytes:
                await self._deny(refusal(413, "the body is too large"), scope, receive, send)
                return
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await app(scope, replay, send)

    async def _until_expiry(self, caller: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream that stays open is cut when the token expires. Calls have deadlines of their own."""
        if caller.expires_at is None:
            await self.mcp(scope, receive, send)
            return
        begun = ended = False

        async def watched(message: Message) -> None:
            nonlocal begun, ended
            begun = True
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        with anyio.move_on_after(caller.expires_at - self.clock.wall()):
            await self.mcp(scope, receive, watched)
        if begun and not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _socket(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        ticket = ticket_in(scope["query_string"])
        if self.viewer is None or (ticket is not None and "origin" not in headers):
            # Tickets are for pages, and a page's socket always says where it comes from.
            await self._deny(refusal(403, "a socket with a ticket needs an Origin"), scope, receive, send)
            return
        # In place: the server below logs this scope's query, and nobody behind us needs the ticket.
        scope["query_string"] = b"" if ticket == "" else without_ticket(scope["query_string"])
        granted = await self._grant(ticket, headers)
        if isinstance(granted, Response):
            await self._deny(granted, scope, receive, send)
            return
        if not self.traffic.has_room_for_socket(granted.subject):
            await self._deny(refusal(429, "too many viewers", {"Retry-After": "5"}), scope, receive, send)
            return
        with self.traffic.socket_of(granted.subject):
            await self.viewer({**scope, "state": {**scope.get("state", {}), "grant": granted}}, receive, send)

    async def _grant(self, ticket: str | None, headers: Mapping[str, str]) -> TicketGrant | Response:
        if ticket is not None:
            return await self._spend(ticket)
        caller = self.callers.identify(headers.get("authorization"))
        refused = self._judge_caller(caller)
        if refused is not None or isinstance(caller, AuthFailure):
            return refused or refusal(403, "Forbidden")
        # Only a ticket can ask for more than to watch.
        decision = self.viewing.decide(caller.subject, ViewMode.VIEW)
        if not decision.allowed:
            return refusal(403, f"{decision.reason} (rule {decision.rule_id})")
        return TicketGrant(subject=caller.subject, mode=ViewMode.VIEW, ends_at=self.tickets.ends_at(caller))

    async def _spend(self, ticket: str) -> TicketGrant | Response:
        redeemed = self.tickets.redeem(ticket)
        if redeemed is None:
            return _unauthorised(_BAD_TICKET)
        number, grant = redeemed
        record = AuditRecord(
            kind=RecordKind.TICKET_SPENT,
            call_id=number,
            subject=grant.subject,
            tool="viewer",
            subcommand=grant.mode.value,
        )
        try:
            await self.audit.record(record)
        except AuditUnavailable:
            return refusal(503, "the server cannot record viewers, so there are none")
        return grant


_BAD_TICKET = AuthFailure("this ticket is unknown, expired or spent; ask for a new one")


def _is_preflight(scope: Scope, headers: Mapping[str, str]) -> bool:
    return scope.get("method") == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def _unauthorised(unknown: AuthFailure) -> Response:
    challenge = 'Bearer realm="browser-shell"'
    if unknown.presented:
        challenge += f', error="invalid_token", error_description="{unknown.reason}"'
    return refusal(401, unknown.reason, {"WWW-Authenticate": challenge})


def _judge_body(scope: Scope, headers: Mapping[str, str], most_bytes: int) -> Response | None:
    if "content-encoding" in headers:
        return refusal(415, "a body may not be compressed")
    length, chunked = int(headers.get("content-length", "0")), "transfer-encoding" in headers
    if length > most_bytes:
        return refusal(413, "the body is too large")
    if scope["method"] == "POST" and (length or chunked) and not _is_json(headers.get("content-type", "")):
        return refusal(415, "the body must be application/json")
    return None


def _is_json(content_type: str) -> bool:
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    return kind == "application/json" and all(
        parameter in ("charset=utf-8", 'charset="utf-8"') for parameter in parameters
    )
