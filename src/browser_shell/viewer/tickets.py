"""Tickets: short-lived, single-use credentials for viewer sockets. Pages cannot send a bearer token there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from browser_shell.asgi import refusal
from browser_shell.core.access import TicketGrant, ViewMode
from browser_shell.core.calls import Principal
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.json_values import parse_json
from browser_shell.core.ports import AuditLog, Clock, NewId
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.policy.document import ViewingSection

DEFAULT_SECONDS = 30
MAX_OPEN_PER_SUBJECT = 64
MAX_OPEN = 1024
MAX_BODY_BYTES = 4 * 1024
_RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ticket:
    ticket_id: str
    """Identifies the ticket in audit records. It is not a credential."""
    grant: TicketGrant
    expires_at: float


@dataclass(slots=True, kw_only=True)
class Tickets:
    """Issued tickets that are not redeemed yet, in memory. Times are monotonic.

    No method awaits, so two sockets cannot redeem the same ticket.
    """

    clock: Clock
    new_id: NewId
    seconds: int = DEFAULT_SECONDS
    _open: dict[str, _Ticket] = field(default_factory=dict)

    def issue(self, principal: Principal, mode: ViewMode) -> tuple[str, str] | None:
        """Return a new ticket and its id; None when too many are open."""
        now = self.clock.monotonic()
        self._remove_expired(now)
        own = sum(1 for ticket in self._open.values() if ticket.grant.subject == principal.subject)
        if own >= MAX_OPEN_PER_SUBJECT or len(self._open) >= MAX_OPEN:
            return None
        text, ticket_id = secrets.token_urlsafe(_RANDOM_BYTES), self.new_id()
        grant = TicketGrant(subject=principal.subject, mode=mode, ends_at=self.ends_at(principal))
        expires_at = now + self.seconds if grant.ends_at is None else min(now + self.seconds, grant.ends_at)
        self._open[text] = _Ticket(ticket_id=ticket_id, grant=grant, expires_at=expires_at)
        return text, ticket_id

    def ends_at(self, principal: Principal) -> float | None:
        """Return the monotonic time at which the principal's token expires."""
        if principal.expires_at is None:
            return None
        return self.clock.monotonic() + principal.expires_at - self.clock.wall()

    def is_valid(self, text: str) -> bool:
        """Return whether `redeem` would succeed now."""
        ticket = self._open.get(text)
        return ticket is not None and self.clock.monotonic() < ticket.expires_at

    def redeem(self, text: str) -> tuple[str, TicketGrant] | None:
        """Use up a ticket. Return its id and grant; None for an unknown, expired or used ticket."""
        ticket = self._open.pop(text, None)
        if ticket is None or self.clock.monotonic() >= ticket.expires_at:
            return None
        return ticket.ticket_id, ticket.grant

    def _remove_expired(self, now: float) -> None:
        for text in [text for text, ticket in self._open.items() if now >= ticket.expires_at]:
            del self._open[text]


def ticket_in(query: bytes) -> str | None:
    """Return the last ticket in a query; '' for a malformed query, which no ticket matches."""
    try:
        tickets = [value for name, value in _pairs(query) if name == "ticket"]
    except ValueError:
        return ""
    return tickets[-1] if tickets else None


def without_ticket(query: bytes) -> bytes:
    """Return the query without tickets, so that it may be logged."""
    return urlencode([(name, value) for name, value in _pairs(query) if name != "ticket"]).encode("ascii")


def _pairs(query: bytes) -> list[tuple[str, str]]:
    return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=32)


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketEndpoint:
    """The ASGI application behind `/tickets`. The gateway has authenticated the caller."""

    tickets: Tickets
    viewing: ViewingSection
    audit: AuditLog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope["state"]["principal"], Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, principal: Principal, request: Request) -> Response:
        mode = _requested_mode(await request.body())
        if mode is None:
            return refusal(400, 'the body may be empty or {"mode": "view"} or {"mode": "control"}')
        decision = self.viewing.decide(principal.subject, mode)
        issued = self.tickets.issue(principal, mode) if decision.allowed else ("", self.tickets.new_id())
        if issued is None:
            return refusal(429, "too many open tickets", {"Retry-After": str(self.tickets.seconds)})
        text, ticket_id = issued
        record = AuditRecord(
            kind=RecordKind.TICKET_ISSUED if decision.allowed else RecordKind.POLICY_BLOCKED,
            call_id=ticket_id,
            subject=principal.subject,
            tool="viewer",
            subcommand=mode.value,
            rule_id="" if decision.allowed else decision.rule_id,
        )
        try:
            await self.audit.record(record)
        except AuditUnavailable:
            self.tickets.redeem(text)
            return refusal(503, "the server cannot record tickets, so it makes none")
        if not decision.allowed:
            return refusal(403, f"{decision.reason} (rule {decision.rule_id})")
        return JSONResponse({"ticket": text, "expires_in": self.tickets.seconds})


def _requested_mode(body: bytes) -> ViewMode | None:
    if not body:
        return ViewMode.VIEW
    try:
        request = parse_json(body.decode("utf-8"))
        if not isinstance(request, dict) or request.keys() - {"mode"}:
            return None
        return ViewMode(request.get("mode", "view"))
    except ValueError:
        return None
