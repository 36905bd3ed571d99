"""Remembers refused connections, so that the call that suffers from one can say why."""

from __future__ import annotations

from collections import deque

from browser_shell.core.egress import Denial, Requester

_REMEMBERED = 500


class DenialBook:
    """The latest refusals of every session."""

    def __init__(self) -> None:
        self._denials: deque[Denial] = deque(maxlen=_REMEMBERED)

    def add(self, denial: Denial) -> None:
        self._denials.append(denial)

    def since(self, requester: Requester, moment: float) -> list[Denial]:
        """What this session was refused at `moment` or later, oldest first."""
        return [denial for denial in self._denials if denial.requester == requester and denial.at >= moment]
