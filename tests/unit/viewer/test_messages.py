from __future__ import annotations

import json

import pytest

from browser_shell.core.access import Activity, SessionWindow, TicketGrant, ViewMode
from browser_shell.viewer.activity import Entry
from browser_shell.viewer.messages import (
    ParsedRequest,
    ViewerRequest,
    ViewerState,
    WordsRefused,
    activity_words,
    hello,
    read_wish,
    situation_words,
)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ('{"type":"take_over"}', ParsedRequest(ViewerRequest.TAKE_OVER)),
        ('{"type":"hand_back"}', ParsedRequest(ViewerRequest.HAND_BACK)),
        ('{"type":"raise","session":"s1"}', ParsedRequest(ViewerRequest.RAISE, "s1")),
    ],
)
def test_a_page_can_wish_for_three_things(text: str, asked: ParsedRequest) -> None:
    assert read_wish(text) == asked


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
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(WordsRefused):
        read_wish(text)


def test_the_first_words_say_what_the_socket_is_worth() -> None:
    grant = TicketGrant(subject="alice", mode=ViewMode.CONTROL, ends_at=130.4)
    assert json.loads(hello(grant, now=100.0, control_idle_seconds=10)) == {
        "type": "hello",
        "mode": "control",
        "subject": "alice",
        "seconds_left": 30,
        "control_idle_seconds": 10,
    }


def test_a_call_is_told_with_time_session_subcommand_result_and_duration() -> None:
    activity = Activity(
        at=1.5, subject="alice", session_id="s1", what="open", result="ok", detail="a.example", duration_ms=12.5
    )
    assert json.loads(activity_words([Entry(3, activity)])) == {
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


def test_sessions_are_told_with_how_long_they_have_been_idle() -> None:
    window = SessionWindow(session_id="s1", host="a.example", title="A", last_used=90.0, in_front=True)
    situation = ViewerState(person_in_control=True, you=False, held=False, open_sessions=3, windows=(window,))
    assert json.loads(situation_words(situation, now=100.0)) == {
        "type": "situation",
        "person_in_control": True,
        "you": False,
        "held": False,
        "open_sessions": 3,
        "sessions": [{"id": "s1", "host": "a.example", "title": "A", "idle_seconds": 10, "front": True}],
    }
