"""What an agent is told about open pages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One tab of a session. Tab ids are the session's own and say nothing about other sessions."""

    tab_id: str
    url: str
    title: str
    active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialog:
    """A JavaScript dialog that blocks its page until it is answered. The message is the page's own words."""

    kind: str
    message: str
