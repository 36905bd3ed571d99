"""The latest calls of each subject, for the list beside the picture."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from dataclasses import dataclass

from browser_shell.core.access import Activity

KEPT_PER_SUBJECT = 50
MAX_SUBJECTS = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """One activity, and its number: numbers only grow."""

    number: int
    activity: Activity


class RecentActivity:
    """An `ActivityFeed` that forgets: so many entries a subject, and the subjects that were active last."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._by_subject: OrderedDict[str, deque[Entry]] = OrderedDict()

    def add(self, activity: Activity) -> None:
        kept = self._by_subject.setdefault(activity.subject, deque(maxlen=KEPT_PER_SUBJECT))
        kept.append(Entry(next(self._numbers), activity))
        self._by_subject.move_to_end(activity.subject)
        if len(self._by_subject) > MAX_SUBJECTS:
            self._by_subject.popitem(last=False)

    def newer(self, subject: str, than: int = 0) -> list[Entry]:
        """What this subject did after entry number `than`, oldest first."""
        return [entry for entry in self._by_subject.get(subject, ()) if entry.number > than]
