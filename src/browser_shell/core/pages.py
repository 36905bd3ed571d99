"""Open pages as agents see them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One tab of a session. Tab ids are numbered per session and reveal nothing about other sessions."""

    tab_id: str
    url: str
    title: str
    active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialog:
    """A JavaScript dialog, which blocks its page until it is answered. The message comes from the page."""

    kind: str
    message: str
