"""The live view: modes of access, the data that viewers see, and the precedence of a person over agents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import Protocol

from browser_shell.core.errors import HumanInControl


class ViewMode(Enum):
    """Permissions of a viewer's socket."""

    VIEW = "view"
    CONTROL = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketGrant:
    """The permissions that a spent ticket gives."""

    subject: str
    mode: ViewMode
    ends_at: float | None
    """Monotonic seconds. The token behind the ticket expires then, and the socket is closed; None without a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """An open session as viewers see it. Title and host come from the page and are untrusted."""

    session_id: str
    host: str
    title: str
    last_used: float
    """Monotonic seconds of its last call."""
    in_front: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One line of the activity list. It contains no typed text, and only the host of a URL."""

    at: float
    """Seconds since the epoch."""
    subject: str
    session_id: str
    what: str
    """The subcommand, or `blocked` for a connection that the egress proxy refused."""
    result: str
    """`ok`, or the code word of the error."""
    detail: str = ""
    """For a refusal: host and rule."""
    duration_ms: float | None = None


class HumanControl(Protocol):
    """The state of a takeover by a person."""

    def seconds_left(self) -> float:
        """Return how long agents should wait; 0 if no person is in control."""


def refuse_while_human_controls(human: HumanControl) -> None:
    """Raises: HumanInControl, with the seconds to wait."""
    seconds = ceil(human.seconds_left())
    if seconds > 0:
        raise HumanInControl(
            f"a person is using the browser; try again in {seconds} s",
            rule_id="viewing.human_in_control",
            retry_after_seconds=seconds,
        )
