"""The word that a client has gone, without a task that waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

STATE_KEY = "departure"
"""Under which the listener puts a connection's own into the state of each request."""


class DisconnectSignal:
    """Of one connection. It has at most one request at a time."""

    def __init__(self) -> None:
        self._then: Callable[[], None] | None = None

    @contextmanager
    def calls(self, then: Callable[[], None]) -> Iterator[None]:
        """While the block runs, `then` is called when the client goes."""
        self._then = then
        try:
            yield
        finally:
            if self._then is then:
                self._then = None

    def happened(self) -> None:
        if self._then is not None:
            self._then()


def departure_of(scope: Mapping[str, Any]) -> DisconnectSignal | None:
    """None where nobody would tell, as under a server that is not ours."""
    departure: DisconnectSignal | None = scope.get("state", {}).get(STATE_KEY)
    return departure
