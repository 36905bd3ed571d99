"""Connections that the browser asks for, and the ones it was refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The session on whose behalf the browser dials."""

    subject: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """One refused connection. There is no path and no query in it: they may hold secrets."""

    requester: Requester
    at: float
    """Monotonic seconds."""
    host: str
    port: int
    rule_id: str
    reason: str
