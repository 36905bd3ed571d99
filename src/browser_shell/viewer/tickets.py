"""Tickets: short-lived, for one socket, made by a caller with a token for a page that cannot send one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from browser_shell.asgi.responses import refusal
from browser_shell.core.access import TicketGrant, ViewMode
from browser_shell.core.calls import Principal
from browser_shell.core.decisions import Decision
from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.json_values import parse_json
from browser_shell.core.ports import AuditLog, Clock, NewId
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.policy.document import ViewingSection

DEFAULT_SECONDS = 30
MAX_OPEN_OF_ONE = 64
MAX_OPEN = 1024
MAX_BODY_BYTES = 4 * 1024
_RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ticket:
    number: str
    """Joins the records of its making and its end. It opens nothing."""
    grant: TicketGrant
    good_until: float


@dataclass(slots=True, kw_only=True)
class Tickets:
    """All tickets that were made and not spent. They live in this process only, and time is monotonic.

    Nothing here awaits, so of two sockets with one ticket exactly one finds it.
    """

    clock: Clock
    new_id: NewId
    seconds: int = DEFAULT_SECONDS
    _open: dict[str, _Ticket] = field(default_factory=dict)

    def issue(self, principal: Principal, mode: ViewMode) -> tuple[str, str] | None:
        """The ticket and its number; None when there are too many."""
        now = self.clock.monotonic()
        self._forget_old(now)
        of_one = sum(1 for ticket in self._open.values() if ticket.grant.subject == principal.subject)
        if of_one >= MAX_OPEN_OF_ONE or len(self._open) >= MAX_OPEN:
            return None
        text, number = secrets.token_urlsafe(_RANDOM_BYTES), self.new_id()
        grant = TicketGrant(subject=principal.subject, mode=mode, ends_at=self.ends_at(principal))
        good_until = now + self.seconds if grant.ends_at is None else min(now + self.seconds, grant.ends_at)
        self._open[text] = _Ticket(number=number, grant=grant, good_until=good_until)
        return text, number

    def ends_at(self, principal: Principal) -> float | None:
        """The monotonic moment at which the principal's token expires."""
        if principal.expires_at is None:
            return None
        return self.clock.monotonic() + principal.expires_at - self.clock.wall()

    def is_good(self, text: str) -> bool:
        """Whether a socket could be opened with it now. Nothing is spent."""
        ticket = self._open.get(text)
        return ticket is not None and self.clock.monotonic() < ticket.good_until

    def redeem(self, text: str) -> tuple[str, TicketGrant] | None:
        """Spends a ticket. Its number and its worth; None for one that is unknown, expired or spent."""
        ticket = self._open.pop(text, None)
        if ticket is None or self.clock.monotonic() >= ticket.good_until:
            return None
        return ticket.number, ticket.grant

    def spend(self, ticket: str) -> TicketGrant | None:
        redeemed = self.redeem(ticket)
        return redeemed[1] if redeemed else None

    def _forget_old(self, now: float) -> None:
        for text in [text for text, ticket in self._open.items() if now >= ticket.good_until]:
            del self._open[text]


def ticket_in(query: bytes) -> str | None:
    """The ticket that a query names, the last one if several; '' for one that cannot be read."""
    try:
        found = [value for name, value in _pairs(query) if name == "ticket"]
    except ValueError:
        return ""
    return found[-1] if found else None


def without_ticket(query: bytes) -> bytes:
    """The query as others may see and log it."""
    return urlencode([(name, value) for name, value in _pairs(query) if name != "ticket"]).encode("ascii")


def _pairs(query: bytes) -> list[tuple[str, str]]:
    return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=32)


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketDesk:
    """The ASGI application behind `/tickets`. The gateway has named the caller."""

    tickets: Tickets
    viewing: ViewingSection
    audit: AuditLog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope["state"]["principal"], Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, principal: Principal, request: Request) -> Response:
        mode = _wanted_mode(await request.body())
        if mode is None:
            return refusal(400, 'the body may be empty or {"mode": "view"} or {"mode": "control"}')
        decision = self.viewing.decide(principal.subject, mode)
        if not decision.allowed:
            return await self._refused(principal, mode, decision)
        issued = self.tickets.issue(principal, mode)
        if issued is None:
            return refusal(429, "too many open tickets", {"Retry-After": str(self.tickets.seconds)})
        text, number = issued
        try:
            await self._record(principal, mode, number=number)
        except AuditUnavailable:
            self.tickets.spend(text)
            return refusal(503, "the server cannot record tickets, so it makes none")
        return JSONResponse({"ticket": text, "expires_in": self.tickets.seconds})

    async def _refused(self, principal: Principal, mode: ViewMode, decision: Decision) -> Response:
        try:
            await self._record(principal, mode, number=self.tickets.new_id(), rule_id=decision.rule_id)
        except AuditUnavailable:
            return refusal(503, "the server cannot record tickets, so it makes none")
        return refusal(403, f"{decision.reason} (rule {decision.rule_id})")

    async def _record(self, principal: Principal, mode: ViewMode, *, number: str, rule_id: str = "") -> None:
        await self.audit.record(
            AuditRecord(
                kind=RecordKind.POLICY_BLOCKED if rule_id else RecordKind.TICKET_ISSUED,
                call_id=number,
                subject=principal.subject,
                tool="viewer",
                subcommand=mode.value,
                rule_id=rule_id,
            )
        )


def _wanted_mode(body: bytes) -> ViewMode | None:
    if not body:
        return ViewMode.VIEW
    try:
        wanted = parse_json(body.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(wanted, dict) or wanted.keys() - {"mode"}:
        return None
    try:
        return ViewMode(wanted.get("mode", "view"))
    except ValueError:
        return None
