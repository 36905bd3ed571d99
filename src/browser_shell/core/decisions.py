"""Decisions of a policy, the errors that refusals become, and connections that the egress proxy refused."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

from browser_shell.core.errors import CallRefused, NameNotResolved, PolicyBlocked

IpAddress: TypeAlias = IPv4Address | IPv6Address

NO_ANSWER_RULE = "dns.no_answer"
"""Rule id of a host name without addresses. Such a name is refused, but no policy forbids it."""
UNREACHABLE_RULE = "connect.failed"
"""Rule id of a connection that the policy allows and that the host does not accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer of a policy. `rule_id` is stable; `reason` is written for people and models."""

    allowed: bool
    rule_id: str
    reason: str


def denied(rule_id: str, reason: str) -> Decision:
    return Decision(allowed=False, rule_id=rule_id, reason=reason)


def refusal_type(rule_id: str) -> type[CallRefused]:
    """Return the error class of refusals by this rule."""
    return NameNotResolved if rule_id == NO_ANSWER_RULE else PolicyBlocked


def refusal_of(decision: Decision) -> CallRefused:
    """Return the error for a decision that refuses."""
    return refusal_type(decision.rule_id)(decision.reason, rule_id=decision.rule_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The session for which the browser opens a connection."""

    subject: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """A connection that was refused or could not be made. Path and query are left out: they may hold secrets."""

    requester: Requester
    at: float
    """Monotonic seconds."""
    host: str
    port: int
    rule_id: str
    reason: str
