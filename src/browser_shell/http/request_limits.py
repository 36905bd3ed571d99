"""Limits on the requests and viewer sockets of one subject, so that other subjects are still served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from browser_shell.core.ports import Clock
from browser_shell.core.token_bucket import TokenBuckets

DEFAULT_REQUESTS_PER_SECOND = 60
MIN_BURST = 150
MAX_CONCURRENT_REQUESTS = 64
MAX_SOCKETS_PER_SUBJECT = 8
MAX_SOCKETS = 16


class RequestLimits:
    """Counts the requests and sockets of authenticated subjects."""

    def __init__(self, *, clock: Clock, requests_per_second: int = DEFAULT_REQUESTS_PER_SECOND) -> None:
        self._requests: Counter[str] = Counter()
        self._sockets: Counter[str] = Counter()
        self._rate: TokenBuckets[str] = TokenBuckets(
            clock=clock, capacity=max(MIN_BURST, requests_per_second), tokens_per_second=requests_per_second
        )

    def admit(self, subject: str) -> float:
        """Count one request towards the rate. Returns 0, or the seconds after which the client may retry."""
        if self._requests[subject] >= MAX_CONCURRENT_REQUESTS:
            return 1.0
        return self._rate.take(subject)

    def open_request(self, subject: str) -> AbstractContextManager[None]:
        """Count a request while the block runs."""
        return _counted(self._requests, subject)

    def has_room_for_socket(self, subject: str) -> bool:
        return self._sockets[subject] < MAX_SOCKETS_PER_SUBJECT and self._sockets.total() < MAX_SOCKETS

    def open_socket(self, subject: str) -> AbstractContextManager[None]:
        """Count a viewer socket while the block runs."""
        return _counted(self._sockets, subject)


@contextmanager
def _counted(counter: Counter[str], subject: str) -> Iterator[None]:
    counter[subject] += 1
    try:
        yield
    finally:
        counter[subject] -= 1
        if not counter[subject]:
            del counter[subject]
