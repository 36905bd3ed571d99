"""The latest calls of each subject, for the list beside the picture."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from dataclasses import dataclass

from browser_shell.core.access import Activity

MAX_ENTRIES_PER_SUBJECT = 50
MAX_SUBJECTS = 256


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
