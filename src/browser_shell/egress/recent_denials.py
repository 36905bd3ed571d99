"""Remembers refused connections, so that the call that suffers from one can say why."""

from __future__ import annotations

from collections import deque

from browser_shell.core.egress import Denial, Requester

_REMEMBERED = 200
"""Of each session: a page that is refused a thousand times must not push out what another session was refused."""
_SESSIONS = 256


class RecentDenials:
    """The latest refusals of every session."""

    def __init__(self) -> None:
        self._denials: dict[Requester, deque[Denial]] = {}

    def add(self, denial: Denial) -> None:
        page = self._denials.pop(denial.requester, None) or deque(maxlen=_REMEMBERED)
        page.append(denial)
        self._denials[denial.requester] = page
        if len(self._denials) > _SESSIONS:
            del self._denials[next(iter(self._denials))]

    def since(self, requester: Requester, moment: float) -> list[Denial]:
        """What this session was refused at `moment` or later, oldest first."""
        return [denial for denial in self._denials.get(requester, ()) if denial.at >= moment]
