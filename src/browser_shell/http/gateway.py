"""The public HTTP surface: checks each request and hands it to the MCP endpoint, the ticket endpoint or the viewer.

The checks run in this order: route and method, Host and Origin, credentials, rate, body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from math import ceil

import anyio
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from browser_shell.asgi import refusal, with_security_headers
from browser_shell.core.access import TicketGrant, ViewMode
from browser_shell.core.calls import Principal
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.ports import AuditLog, CallHandler, Clock, NewId
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.core.token_bucket import TokenBuckets
from browser_shell.http.routes import Route, TrustedHosts, allows_method, match_route
from browser_shell.http.tokens import Authenticator, AuthFailure
from browser_shell.mcp_server.endpoint import INSTRUCTIONS, McpEndpoint
from browser_shell.mcp_server.json_rpc import MAX_MESSAGE_BYTES
from browser_shell.ops.metrics import CountedCalls, Metrics
from browser_shell.policy.document import ViewingSection
from browser_shell.viewer import tickets as ticket_limits
from browser_shell.viewer.tickets import DEFAULT_SECONDS, TicketEndpoint, Tickets, ticket_in, without_ticket

DEFAULT_REQUESTS_PER_SECOND = 60
MIN_BURST = 150
MAX_CONCURRENT_REQUESTS = 64
MAX_SOCKETS_PER_SUBJECT = 8
MAX_SOCKETS = 16
_MAX_BODY_BYTES = {Route.MCP: MAX_MESSAGE_BYTES, Route.TICKETS: ticket_limits.MAX_BODY_BYTES}
_UPGRADE_HEADERS = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
_PREFLIGHT_SECONDS = 600
_PREFLIGHT_HEADERS = (
    "Authorization, Content-Type, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"
)
_INVALID_TICKET = AuthFailure("this ticket is unknown, expired or spent; ask for a new one")


class _Refused(Exception):
    """A request that is answered with a refusal."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Settings of the public listener that an operator can change."""

    trusted_hosts: TrustedHosts
    ticket_seconds: int = DEFAULT_SECONDS
    requests_per_second: int = DEFAULT_REQUESTS_PER_SECOND
    viewing: ViewingSection = field(default_factory=ViewingSection)


class RequestLimits:
    """Limits the requests and viewer sockets of one subject, so that other subjects are still served."""

    def __init__(self, *, clock: Clock, requests_per_second: int = DEFAULT_REQUESTS_PER_SECOND) -> None:
        self._requests: Counter[str] = Counter()
        self._sockets: Counter[str] = Counter()
        self._rate: TokenBuckets[str] = TokenBuckets(
            clock=clock, capacity=max(MIN_BURST, requests_per_second), tokens_per_second=requests_per_second
        )

    def admit(self, subject: str) -> float:
        """Count one request towards the rate. Returns 0, or the seconds after which the client may retry."""
        if self._requests[subject] >= MAX_CONCURRENT_REQUESTS:
            return 1.0
        return self._rate.take(subject)

    def open_request(self, subject: str) -> AbstractContextManager[None]:
        """Count a request while the block runs."""
        return _counted(self._requests, subject)

    def has_room_for_socket(self, subject: str) -> bool:
        return self._sockets[subject] < MAX_SOCKETS_PER_SUBJECT and self._sockets.total() < MAX_SOCKETS

    def open_socket(self, subject: str) -> AbstractContextManager[None]:
        """Count a viewer socket while the block runs."""
        return _counted(self._sockets, subject)


@contextmanager
def _counted(counter: Counter[str], subject: str) -> Iterator[None]:
    counter[subject] += 1
    try:
        yield
    finally:
        counter[subject] -= 1
        if not counter[subject]:
            del counter[subject]


class Gateway:
    """An ASGI application.

    Applications behind it find the caller in `scope["state"]`: `principal` for a request, `grant` for a WebSocket.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        handler: CallHandler,
        authenticator: Authenticator,
        viewer: ASGIApp | None,
        audit: AuditLog,
        clock: Clock,
        new_id: NewId,
        metrics: Metrics,
        instructions: str = INSTRUCTIONS,
    ) -> None:
        """`viewer` is None for a server without a display. The viewer's routes do not exist then."""
        self._trusted_hosts = settings.trusted_hosts
        self._viewing = settings.viewing
        self._authenticator = authenticator
        self._viewer = viewer
        self._audit = audit
        self._clock = clock
        self._metrics = metrics
        self._limits = RequestLimits(clock=clock, requests_per_second=settings.requests_per_second)
        self._tickets = Tickets(clock=clock, new_id=new_id, seconds=settings.ticket_seconds)
        self._ticket_endpoint = TicketEndpoint(tickets=self._tickets, viewing=settings.viewing, audit=audit)
        calls = CountedCalls(handler=handler, metrics=metrics, clock=clock)
        self._mcp = McpEndpoint(calls, clock=clock, new_id=new_id, instructions=instructions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await Router(lifespan=self._lifespan)(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = with_security_headers(send, self._cors_headers(scope, headers))
        try:
            await self._serve(scope, headers, receive, send)
        except _Refused as refused:
            self._metrics.record_denial(refused.response.status_code)
            await refused.response(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async with self._mcp.run():
            yield

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Raises: _Refused, before a response has started."""
        route = self._check_before_authentication(scope, headers)
        if _is_preflight(scope, headers):
            await Response(status_code=204)(scope, receive, send)
        elif self._viewer is not None and scope["type"] == "websocket":
            await self._serve_socket(self._viewer, scope, headers, receive, send)
        elif self._viewer is not None and route is Route.VIEWER:
            await self._serve_page(self._viewer, scope, receive, send)
        else:
            await self._serve_request(route, scope, headers, receive, send)

    def _check_before_authentication(self, scope: Scope, headers: Headers) -> Route:
        """Check route, method, Host and Origin, which need no credential."""
        route = match_route(scope["raw_path"])
        if route is None or (self._viewer is None and route in (Route.VIEWER, Route.SOCKET)):
            raise _Refused(refusal(403, "Forbidden"))
        is_preflight = _is_preflight(scope, headers) and route in (Route.MCP, Route.TICKETS)
        if not is_preflight and not allows_method(route, scope.get("method", "GET")):
            raise _Refused(refusal(403, "Forbidden"))
        if not self._trusted_hosts.allows_host(headers.get("host", "")):
            raise _Refused(refusal(403, "this Host is not allowed; see PUBLIC_HOSTS"))
        origin = headers.get("origin")
        if origin is not None and not self._trusted_hosts.allows_origin(origin, host=headers["host"]):
            raise _Refused(refusal(403, "pages of that Origin are not allowed; see ALLOWED_ORIGINS"))
        needs_socket = route is Route.SOCKET or (route is Route.VIEWER and "upgrade" in headers)
        if needs_socket and scope["type"] != "websocket":
            raise _Refused(refusal(426, "a complete WebSocket handshake of version 13 is needed", _UPGRADE_HEADERS))
        return route

    def _cors_headers(self, scope: Scope, headers: Headers) -> Mapping[str, str]:
        """Headers that let a page of a listed origin read the response."""
        origin = headers.get("origin")
        if origin is None or origin not in self._trusted_hosts.origins:
            return {}
        allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if not _is_preflight(scope, headers):
            return {**allowed, "Access-Control-Expose-Headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After"}
        return {
            **allowed,
            "Access-Control-Allow-Methods": "GET, POST, DELETE",
            "Access-Control-Allow-Headers": _PREFLIGHT_HEADERS,
            "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
        }

    def _authenticate(self, headers: Headers) -> Principal:
        """Identify the caller and count the request towards its rate."""
        caller = self._authenticator.identify(headers.get("authorization"))
        if isinstance(caller, AuthFailure):
            raise _unauthorised(caller)
        seconds = self._limits.admit(caller.subject)
        if seconds > 0:
            raise _Refused(refusal(429, "too many requests", {"Retry-After": str(ceil(seconds))}))
        return caller

    async def _serve_request(self, route: Route, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        # A request with a ticket is judged by the ticket alone, and a ticket is valid for a WebSocket only.
        if ticket_in(scope["query_string"]) is not None:
            raise _unauthorised(AuthFailure("a ticket is valid for a viewer socket only"))
        caller = self._authenticate(headers)
        _check_body_headers(scope, headers, _MAX_BODY_BYTES[route])
        scope = {**scope, "state": {**scope.get("state", {}), "principal": caller}}
        with self._limits.open_request(caller.subject):
            if scope["method"] == "POST":
                body = await _read_body(receive, _MAX_BODY_BYTES[route])
                if body is not None:
                    app = self._ticket_endpoint if route is Route.TICKETS else self._mcp
                    await app(scope, _replay(body, receive), send)
            else:
                await self._serve_until_expiry(caller, scope, receive, send)

    async def _serve_until_expiry(self, caller: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a GET or DELETE, and end an open event stream when the token expires."""
        if caller.expires_at is None:
            await self._mcp(scope, receive, send)
            return
        has_started = has_ended = False

        async def watch(message: Message) -> None:
            nonlocal has_started, has_ended
            has_started = True
            has_ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        with anyio.move_on_after(caller.expires_at - self._clock.wall()):
            await self._mcp(scope, receive, watch)
        if has_started and not has_ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _serve_page(self, viewer: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a file of the viewer page. Files need no credential, but an invalid ticket is refused early."""
        ticket = ticket_in(scope["query_string"])
        if ticket is not None and not self._tickets.is_valid(ticket):
            raise _unauthorised(_INVALID_TICKET)
        await viewer(scope, receive, send)

    async def _serve_socket(
        self, viewer: ASGIApp, scope: Scope, headers: Headers, receive: Receive, send: Send
    ) -> None:
        ticket = ticket_in(scope["query_string"])
        if ticket is not None and "origin" not in headers:
            # Tickets are for pages, and browsers send an Origin with every WebSocket of a page.
            raise _Refused(refusal(403, "a WebSocket with a ticket needs an Origin header"))
        # Changed in place, because uvicorn logs the query of this scope.
        scope["query_string"] = b"" if ticket == "" else without_ticket(scope["query_string"])
        grant = self._grant_for_token(headers) if ticket is None else await self._spend_ticket(ticket)
        if not self._limits.has_room_for_socket(grant.subject):
            raise _Refused(refusal(429, "too many viewers", {"Retry-After": "5"}))
        with self._limits.open_socket(grant.subject):
            await viewer({**scope, "state": {**scope.get("state", {}), "grant": grant}}, receive, send)

    def _grant_for_token(self, headers: Headers) -> TicketGrant:
        """A token grants viewing. Control needs a ticket."""
        caller = self._authenticate(headers)
        decision = self._viewing.decide(caller.subject, ViewMode.VIEW)
        if not decision.allowed:
            raise _Refused(refusal(403, f"{decision.reason} (rule {decision.rule_id})"))
        return TicketGrant(subject=caller.subject, mode=ViewMode.VIEW, ends_at=self._tickets.ends_at(caller))

    async def _spend_ticket(self, ticket: str) -> TicketGrant:
        redeemed = self._tickets.redeem(ticket)
        if redeemed is None:
            raise _unauthorised(_INVALID_TICKET)
        number, grant = redeemed
        record = AuditRecord(
            kind=RecordKind.TICKET_SPENT,
            call_id=number,
            subject=grant.subject,
            tool="viewer",
            subcommand=grant.mode.value,
        )
        try:
            await self._audit.record(record)
        except AuditUnavailable as error:
            raise _Refused(refusal(503, "the audit log cannot be written, so no viewer is admitted")) from error
        return grant


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    return scope.get("method") == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def _unauthorised(failure: AuthFailure) -> _Refused:
    challenge = 'Bearer realm="browser-shell"'
    if failure.presented:
        challenge += f', error="invalid_token", error_description="{failure.reason}"'
    return _Refused(refusal(401, failure.reason, {"WWW-Authenticate": challenge}))


def _check_body_headers(scope: Scope, headers: Headers, max_bytes: int) -> None:
    if "content-encoding" in headers:
        raise _Refused(refusal(415, "a body may not be compressed"))
    length, is_chunked = int(headers.get("content-length", "0")), "transfer-encoding" in headers
    if length > max_bytes:
        raise _Refused(refusal(413, "the body is too large"))
    if scope["method"] == "POST" and (length or is_chunked) and not _is_json(headers.get("content-type", "")):
        raise _Refused(refusal(415, "the body must be application/json"))


def _is_json(content_type: str) -> bool:
    media_type, *parameters = (part.strip().lower() for part in content_type.split(";"))
    return media_type == "application/json" and all(
        parameter in ("charset=utf-8", 'charset="utf-8"') for parameter in parameters
    )


async def _read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Read a whole body; None when the client disconnects before its end."""
    body, has_more = bytearray(), True
    while has_more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > max_bytes:
            raise _Refused(refusal(413, "the body is too large"))
    return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields the body first."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
