"""Builds the gateway and what stands behind it."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import ASGIApp

from browser_shell.asgi.request_limits import DEFAULT_REQUESTS_PER_SECOND, RequestLimits
from browser_shell.core.ports import AuditLog, CallHandler, Clock, NewId
from browser_shell.http.gateway import Gateway
from browser_shell.http.routes import TrustedHosts
from browser_shell.http.tokens import Authenticator
from browser_shell.mcp_server.endpoint import INSTRUCTIONS, McpEndpoint
from browser_shell.ops.metrics import CountedCalls, Metrics
from browser_shell.policy.document import ViewingSection
from browser_shell.viewer.tickets import DEFAULT_SECONDS, TicketEndpoint, Tickets


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSettings:
    """What an operator can set about the public port."""

    neighbours: TrustedHosts
    ticket_seconds: int = DEFAULT_SECONDS
    requests_per_second: int = DEFAULT_REQUESTS_PER_SECOND
    viewing: ViewingSection = field(default_factory=ViewingSection)


def build_front(
    settings: FrontSettings,
    *,
    handler: CallHandler,
    callers: Authenticator,
    viewer: ASGIApp | None,
    audit: AuditLog,
    clock: Clock,
    new_id: NewId,
    metrics: Metrics | None = None,
    instructions: str = INSTRUCTIONS,
) -> Gateway:
    """An ASGI application for `serve_http`."""
    metrics = metrics if metrics is not None else Metrics()
    tickets = Tickets(clock=clock, new_id=new_id, seconds=settings.ticket_seconds)
    return Gateway(
        mcp=McpEndpoint(
            CountedCalls(handler=handler, metrics=metrics, clock=clock),
            clock=clock,
            new_id=new_id,
            instructions=instructions,
        ),
        desk=TicketEndpoint(tickets=tickets, viewing=settings.viewing, audit=audit),
        viewer=viewer,
        callers=callers,
        neighbours=settings.neighbours,
        tickets=tickets,
        viewing=settings.viewing,
        traffic=RequestLimits(clock=clock, requests_per_second=settings.requests_per_second),
        audit=audit,
        clock=clock,
        metrics=metrics,
    )
