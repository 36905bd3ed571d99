"""Connections of the browser, and those that the egress proxy refused."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

IpAddress: TypeAlias = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The session for which the browser opens a connection."""

    subject: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """One refused connection. Path and query are left out because they may hold secrets."""

    requester: Requester
    at: float
    """Monotonic seconds."""
    host: str
    port: int
    rule_id: str
    reason: str
