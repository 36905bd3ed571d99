"""Messages between the server and the page besides the picture (JSON in text frames), and the latest calls in them."""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from browser_shell.core.access import Activity, SessionWindow, TicketGrant
from browser_shell.core.errors import BrowserShellError
from browser_shell.core.json_values import JsonObject

MAX_REQUEST_CHARACTERS = 1024
MAX_ENTRIES_PER_SUBJECT = 50
MAX_SUBJECTS = 256


class RequestRefused(BrowserShellError):
    """The page sent a message that is not a `ViewerRequest`."""


class ViewerRequest(Enum):
    """Requests that a page may send."""

    TAKE_OVER = "take_over"
    HAND_BACK = "hand_back"
    RAISE = "raise"


@dataclass(frozen=True, slots=True)
class ViewerState:
    """State shown besides the picture. It is sent again whenever it changes."""

    person_in_control: bool
    you: bool
    """Whether the person in control is this viewer."""
    held: bool
    """Whether this viewer took over and has not handed back."""
    open_sessions: int
    windows: tuple[SessionWindow, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One activity with its sequence number. Numbers only grow."""

    number: int
    activity: Activity


class RecentActivity:
    """Keeps the latest entries of the most recently active subjects."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._by_subject: OrderedDict[str, deque[Entry]] = OrderedDict()

    def add(self, activity: Activity) -> None:
        entries = self._by_subject.setdefault(activity.subject, deque(maxlen=MAX_ENTRIES_PER_SUBJECT))
        entries.append(Entry(next(self._numbers), activity))
        self._by_subject.move_to_end(activity.subject)
        if len(self._by_subject) > MAX_SUBJECTS:
            self._by_subject.popitem(last=False)

    def entries_after(self, subject: str, number: int = 0) -> list[Entry]:
        """Return the subject's entries with a higher number, oldest first."""
        return [entry for entry in self._by_subject.get(subject, ()) if entry.number > number]


def parse_request(text: str) -> tuple[ViewerRequest, str]:
    """Return a request, and the session whose window it raises or ''. Raises: RequestRefused."""
    if len(text) > MAX_REQUEST_CHARACTERS:
        raise RequestRefused("the request is too long")
    try:
        message = json.loads(text)
        request = ViewerRequest(message["type"])
        session_id = message["session"] if request is ViewerRequest.RAISE else ""
    except (ValueError, TypeError, KeyError, RecursionError) as invalid:
        raise RequestRefused("unknown request") from invalid
    if not isinstance(session_id, str):
        raise RequestRefused("the session is not named by its id")
    return request, session_id


def hello_message(grant: TicketGrant, *, now: float, control_idle_seconds: float) -> str:
    seconds_left = None if grant.ends_at is None else round(max(0.0, grant.ends_at - now))
    return _compact_json(
        {
            "type": "hello",
            "mode": grant.mode.value,
            "subject": grant.subject,
            "seconds_left": seconds_left,
            "control_idle_seconds": control_idle_seconds,
        }
    )


def activity_message(entries: Sequence[Entry]) -> str:
    return _compact_json({"type": "activity", "entries": [_entry_json(entry) for entry in entries]})


def _entry_json(entry: Entry) -> JsonObject:
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


def state_message(state: ViewerState, *, now: float) -> str:
    return _compact_json(
        {
            "type": "situation",
            "person_in_control": state.person_in_control,
            "you": state.you,
            "held": state.held,
            "open_sessions": state.open_sessions,
            "sessions": [
                {
                    "id": window.session_id,
                    "host": window.host,
                    "title": window.title,
                    "idle_seconds": round(max(0.0, now - window.last_used)),
                    "front": window.in_front,
                }
                for window in state.windows
            ],
        }
    )


def _compact_json(message: JsonObject) -> str:
    return json.dumps(message, separators=(",", ":"))
