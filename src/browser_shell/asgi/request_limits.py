"""How much one caller may ask of the gateway, so that the others are still served."""

from __future__ import annotations

from collections import Counter, OrderedDict
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from browser_shell.core.ports import Clock

DEFAULT_REQUESTS_PER_SECOND = 60
LEAST_BURST = 150
MAX_REQUESTS_AT_ONCE = 64
MAX_SOCKETS_OF_ONE = 8
MAX_SOCKETS = 16
MAX_REMEMBERED = 4096


@dataclass(slots=True)
class _Allowance:
    left: float
    at: float


@dataclass(slots=True, kw_only=True)
class RequestLimits:
    """Counts requests and sockets by subject. Only what was authenticated is counted."""

    clock: Clock
    requests_per_second: int = DEFAULT_REQUESTS_PER_SECOND
    _allowances: OrderedDict[str, _Allowance] = field(default_factory=OrderedDict)
    _requests: Counter[str] = field(default_factory=Counter)
    _sockets: Counter[str] = field(default_factory=Counter)

    def admit(self, subject: str) -> float:
        """Takes one request from the subject's allowance. Returns the seconds to wait instead, or 0."""
        now, burst = self.clock.monotonic(), max(LEAST_BURST, self.requests_per_second)
        allowance = self._allowances.setdefault(subject, _Allowance(burst, now))
        self._allowances.move_to_end(subject)
        while len(self._allowances) > MAX_REMEMBERED:
            self._allowances.popitem(last=False)
        earned = (now - allowance.at) * self.requests_per_second
        allowance.left, allowance.at = min(burst, allowance.left + earned), now
        if self._requests[subject] >= MAX_REQUESTS_AT_ONCE:
            return 1.0
        if allowance.left < 1:
            return (1 - allowance.left) / self.requests_per_second
        allowance.left -= 1
        return 0.0

    def request_of(self, subject: str) -> AbstractContextManager[None]:
        return _Counted(self._requests, subject)

    def has_room_for_socket(self, subject: str) -> bool:
        return self._sockets[subject] < MAX_SOCKETS_OF_ONE and self._sockets.total() < MAX_SOCKETS

    def socket_of(self, subject: str) -> AbstractContextManager[None]:
        return _Counted(self._sockets, subject)


@dataclass(slots=True)
class _Counted:
    counter: Counter[str]
    subject: str

    def __enter__(self) -> None:
        self.counter[self.subject] += 1

    def __exit__(self, *_: object) -> None:
        self.counter[self.subject] -= 1
        if not self.counter[self.subject]:
            del self.counter[self.subject]
