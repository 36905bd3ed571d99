from __future__ import annotations

import json

import pytest

from browser_shell.core.access import Activity, SessionWindow, TicketGrant, ViewMode
from browser_shell.viewer.messages import (
    MAX_ENTRIES_PER_SUBJECT,
    MAX_SUBJECTS,
    Entry,
    RecentActivity,
    RequestRefused,
    ViewerRequest,
    ViewerState,
    activity_message,
    hello_message,
    parse_request,
    state_message,
)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ('{"type":"take_over"}', (ViewerRequest.TAKE_OVER, "")),
        ('{"type":"hand_back"}', (ViewerRequest.HAND_BACK, "")),
        ('{"type":"raise","session":"s1"}', (ViewerRequest.RAISE, "s1")),
    ],
)
def test_request_is_parsed(text: str, parsed: tuple[ViewerRequest, str]) -> None:
    assert parse_request(text) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"take_over"',
        "{}",
        '{"type":"reboot"}',
        '{"type":["take_over"]}',
        '{"type":"raise"}',
        '{"type":"raise","session":7}',
        '{"type":"take_over","padding":"' + "x" * 2000 + '"}',
        "[" * 1000,
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(RequestRefused):
        parse_request(text)


def test_hello_describes_the_grant() -> None:
    grant = TicketGrant(subject="alice", mode=ViewMode.CONTROL, ends_at=130.4)
    assert json.loads(hello_message(grant, now=100.0, control_idle_seconds=10)) == {
        "type": "hello",
        "mode": "control",
        "subject": "alice",
        "seconds_left": 30,
        "control_idle_seconds": 10,
    }


def test_activity_message_describes_each_call() -> None:
    activity = Activity(
        at=1.5, subject="alice", session_id="s1", what="open", result="ok", detail="a.example", duration_ms=12.5
    )
    assert json.loads(activity_message([Entry(3, activity)])) == {
        "type": "activity",
        "entries": [
            {
                "number": 3,
                "at": 1.5,
                "session": "s1",
                "what": "open",
                "result": "ok",
                "detail": "a.example",
                "ms": 12.5,
            }
        ],
    }


def test_state_message_lists_sessions_with_their_idle_time() -> None:
    window = SessionWindow(session_id="s1", host="a.example", title="A", last_used=90.0, in_front=True)
    state = ViewerState(person_in_control=True, you=False, held=False, open_sessions=3, windows=(window,))
    assert json.loads(state_message(state, now=100.0)) == {
        "type": "situation",
        "person_in_control": True,
        "you": False,
        "held": False,
        "open_sessions": 3,
        "sessions": [{"id": "s1", "host": "a.example", "title": "A", "idle_seconds": 10, "front": True}],
    }


def an_activity(subject: str = "alice", what: str = "open") -> Activity:
    return Activity(at=1.0, subject=subject, session_id="s1", what=what, result="ok")


def test_subject_sees_only_its_own_entries_in_order() -> None:
    feed = RecentActivity()
    for what in ("open", "click"):
        feed.add(an_activity("alice", what))
    feed.add(an_activity("bob", "close"))
    assert [entry.activity.what for entry in feed.entries_after("alice")] == ["open", "click"]
    assert [entry.activity.what for entry in feed.entries_after("bob")] == ["close"]
    assert feed.entries_after("carol") == []


def test_only_later_entries_are_returned() -> None:
    feed = RecentActivity()
    feed.add(an_activity(what="open"))
    (first,) = feed.entries_after("alice")
    assert feed.entries_after("alice", first.number) == []
    feed.add(an_activity(what="click"))
    assert [entry.activity.what for entry in feed.entries_after("alice", first.number)] == ["click"]


def test_oldest_entries_and_least_recent_subjects_are_dropped() -> None:
    feed = RecentActivity()
    for number in range(MAX_ENTRIES_PER_SUBJECT + 5):
        feed.add(an_activity(what=str(number)))
    assert next(entry.activity.what for entry in feed.entries_after("alice")) == "5"
    for number in range(MAX_SUBJECTS):
        feed.add(an_activity(subject=f"s{number}"))
    assert feed.entries_after("alice") == []
    assert feed.entries_after("s0")
