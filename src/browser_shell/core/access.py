"""Who may watch, who may touch, and what they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ViewMode(Enum):
    """What a viewer's socket may do."""

    VIEW = "view"
    CONTROL = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketGrant:
    """What a ticket was worth when it was spent."""

    subject: str
    mode: ViewMode
    ends_at: float | None
    """Monotonic moment at which the token that made the ticket expires, and the socket is cut; None for no token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """An open session as people who watch are told of it. Title and host are the page's words."""

    session_id: str
    host: str
    title: str
    last_used: float
    """Monotonic moment of its last call."""
    in_front: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One line of the list beside the picture. It never holds what was typed, nor more of a URL than its host."""

    at: float
    """Wall time, seconds since the epoch."""
    subject: str
    session_id: str
    what: str
    """The subcommand, or `blocked` for a connection that the egress proxy refused."""
    result: str
    """`ok`, or the code word of the error."""
    detail: str = ""
    """For a refusal: host and rule."""
    duration_ms: float | None = None
