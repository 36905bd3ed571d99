from __future__ import annotations

from browser_shell.core.access import Activity
from browser_shell.viewer.activity import MAX_ENTRIES_PER_SUBJECT, MAX_SUBJECTS, RecentActivity


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
