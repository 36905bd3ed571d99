from __future__ import annotations

from browser_shell.core.access import Activity
from browser_shell.viewer.activity import KEPT_PER_SUBJECT, MAX_SUBJECTS, RecentActivity


def an_activity(subject: str = "alice", what: str = "open") -> Activity:
    return Activity(at=1.0, subject=subject, session_id="s1", what=what, result="ok")


def test_a_subject_sees_its_own_entries_in_order_and_no_others() -> None:
    feed = RecentActivity()
    for what in ("open", "click"):
        feed.add(an_activity("alice", what))
    feed.add(an_activity("bob", "close"))
    assert [entry.activity.what for entry in feed.newer("alice")] == ["open", "click"]
    assert [entry.activity.what for entry in feed.newer("bob")] == ["close"]
    assert feed.newer("carol") == []


def test_only_what_is_new_is_told_again() -> None:
    feed = RecentActivity()
    feed.add(an_activity(what="open"))
    (first,) = feed.newer("alice")
    assert feed.newer("alice", than=first.number) == []
    feed.add(an_activity(what="click"))
    assert [entry.activity.what for entry in feed.newer("alice", than=first.number)] == ["click"]


def test_old_entries_and_old_subjects_are_forgotten() -> None:
    feed = RecentActivity()
    for number in range(KEPT_PER_SUBJECT + 5):
        feed.add(an_activity(what=str(number)))
    assert next(entry.activity.what for entry in feed.newer("alice")) == "5"
    for number in range(MAX_SUBJECTS):
        feed.add(an_activity(subject=f"s{number}"))
    assert feed.newer("alice") == []
    assert feed.newer("s0")
