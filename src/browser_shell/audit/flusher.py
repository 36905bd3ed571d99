"""The thread that waits for the disk. It lives as long as the log: a flush must not need a thread to be started."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias

_Told: TypeAlias = asyncio.Future[None]
_END_SECONDS = 5.0


class Flusher:
    """Does one thing after the other."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[tuple[Callable[[], None], _Told] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Raises: RuntimeError when no thread can be started. Nothing happens when it runs."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="audit-flush", daemon=True)
            thread.start()
            self._thread = thread

    def do(self, work: Callable[[], None]) -> _Told:
        """What `work` raises is raised where the future is awaited. Raises: RuntimeError as `start` does."""
        self.start()
        told: _Told = asyncio.get_running_loop().create_future()
        self._orders.put((work, told))
        return told

    def stop(self) -> None:
        """Waits for what is under way, unless the disk has stopped answering."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join(_END_SECONDS)
            self._thread = None

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            work, told = order
            fault: BaseException | None = None
            try:
                work()
            except BaseException as raised:  # noqa: BLE001  it belongs to whoever waits
                fault = raised
            with suppress(RuntimeError):  # The loop has ended, and nobody waits.
                told.get_loop().call_soon_threadsafe(_tell, told, fault)


def _tell(told: _Told, fault: BaseException | None) -> None:
    if told.done():
        return
    if fault is None:
        told.set_result(None)
    else:
        told.set_exception(fault)
