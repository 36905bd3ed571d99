"""What the server and the page tell each other beside the picture, as JSON in text frames."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from browser_shell.core.access import SessionWindow, TicketGrant
from browser_shell.core.errors import BrowserShellError
from browser_shell.core.json_values import JsonObject
from browser_shell.viewer.activity import Entry

MAX_WORDS = 1024
"""Longest message from a page."""


class WordsRefused(BrowserShellError):
    """The page said something that is not in this list."""


class ViewerRequest(Enum):
    """What a page may ask for."""

    TAKE_OVER = "take_over"
    HAND_BACK = "hand_back"
    RAISE = "raise"


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """One wish."""

    wish: ViewerRequest
    session_id: str = ""
    """The session whose window to raise."""


@dataclass(frozen=True, slots=True)
class ViewerState:
    """What a viewer is shown besides the picture. It is told again whenever it differs."""

    person_in_control: bool
    you: bool
    """Whether the person in control is this viewer."""
    held: bool
    """Whether this viewer took over and has not handed back."""
    open_sessions: int
    windows: tuple[SessionWindow, ...]


def read_wish(text: str) -> ParsedRequest:
    """Raises: WordsRefused."""
    if len(text) > MAX_WORDS:
        raise WordsRefused("too many words")
    try:
        words = json.loads(text)
        wish = ViewerRequest(words["type"])
        session_id = words["session"] if wish is ViewerRequest.RAISE else ""
    except (ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise WordsRefused("not a wish that this server knows") from wrong
    if not isinstance(session_id, str):
        raise WordsRefused("a session is named by its id")
    return ParsedRequest(wish, session_id)


def hello(grant: TicketGrant, *, now: float, control_idle_seconds: float) -> str:
    seconds_left = None if grant.ends_at is None else round(max(0.0, grant.ends_at - now))
    return _text(
        {
            "type": "hello",
            "mode": grant.mode.value,
            "subject": grant.subject,
            "seconds_left": seconds_left,
            "control_idle_seconds": control_idle_seconds,
        }
    )


def activity_words(entries: Sequence[Entry]) -> str:
    return _text({"type": "activity", "entries": [_entry_words(entry) for entry in entries]})


def _entry_words(entry: Entry) -> JsonObject:
    activity = entry.activity
    return {
        "number": entry.number,
        "at": round(activity.at, 3),
        "session": activity.session_id,
        "what": activity.what,
        "result": activity.result,
        "detail": activity.detail,
        "ms": activity.duration_ms,
    }


def situation_words(situation: ViewerState, *, now: float) -> str:
    return _text(
        {
            "type": "situation",
            "person_in_control": situation.person_in_control,
            "you": situation.you,
            "held": situation.held,
            "open_sessions": situation.open_sessions,
            "sessions": [
                {
                    "id": window.session_id,
                    "host": window.host,
                    "title": window.title,
                    "idle_seconds": round(max(0.0, now - window.last_used)),
                    "front": window.in_front,
                }
                for window in situation.windows
            ],
        }
    )


def _text(message: JsonObject) -> str:
    return json.dumps(message, separators=(",", ":"))
