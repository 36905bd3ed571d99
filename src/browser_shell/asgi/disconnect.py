"""Notification of a client disconnect without a task that waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

DISCONNECT_SIGNAL = "disconnect_signal"
"""Key in `scope["state"]` under which the listener puts the signal of the connection."""


class DisconnectSignal:
    """The signal of one connection, which serves one request at a time."""

    def __init__(self) -> None:
        self._callback: Callable[[], None] | None = None

    @contextmanager
    def on_disconnect(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` if the client disconnects while the block runs."""
        self._callback = callback
        try:
            yield
        finally:
            # The next request of the connection may have set its own callback already.
            if self._callback is callback:
                self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()


def disconnect_signal(scope: Mapping[str, Any]) -> DisconnectSignal | None:
    """Return the signal of the request's connection; None under a server that provides none."""
    signal: DisconnectSignal | None = scope.get("state", {}).get(DISCONNECT_SIGNAL)
    return signal
