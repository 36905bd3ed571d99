"""The thread that waits for the disk. It lives as long as the log: a flush must not need a thread to be started."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias

_Told: TypeAlias = asyncio.Future[None]
_END_SECONDS = 5.0
MOMENT_SECONDS = 0.001
"""For this long the event loop itself waits for a disk that was so quick the last time: to be told of the end in a
later turn would cost half as much again. A disk that begins to hang holds the server up once, and by no more."""
_PAUSE_SECONDS = 4 * MOMENT_SECONDS
"""Before it does so again: callers that come close together share a flush instead."""


class Flusher:
    """Does one thing after the other."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_quick = False
        self._may_wait_at = 0.0

    def start(self) -> None:
        """Raises: RuntimeError when no thread can be started. Nothing happens when it runs."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="audit-flush", daemon=True)
            thread.start()
            self._thread = thread

    def do(self, work: Callable[[], None]) -> Order:
        """Begins it. It may be over already when this returns. Raises: RuntimeError as `start` does."""
        self.start()
        order = Order(work)
        self._orders.put(order)
        now = time.monotonic()
        if self._is_quick and now >= self._may_wait_at:
            self._is_quick = order.ends_within(MOMENT_SECONDS)
            self._may_wait_at = now + _PAUSE_SECONDS
        return order

    def stop(self) -> None:
        """Waits for what is under way, unless the disk has stopped answering."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join(_END_SECONDS)
            self._thread = None

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            began = time.monotonic()
            order.carry_out()
            self._is_quick = time.monotonic() - began < MOMENT_SECONDS


class Order:
    """One piece of work for the thread. One task at most waits for it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._fault: BaseException | None = None
        self._told: _Told | None = None
        self._under_way = threading.Lock()
        self._under_way.acquire()
        self.is_over = False

    def carry_out(self) -> None:
        """In the thread."""
        try:
            self._work()
        except BaseException as raised:  # noqa: BLE001  it belongs to whoever waits
            self._fault = raised
        # In this order: either this thread sees who waits, or who begins to wait sees that it is over.
        self.is_over = True
        self._under_way.release()
        told = self._told
        if told is not None:
            with suppress(RuntimeError):  # The loop has ended, and nobody waits.
                told.get_loop().call_soon_threadsafe(_tell, told)

    def ends_within(self, seconds: float) -> bool:
        """Waits without giving way to other tasks."""
        return self._under_way.acquire(timeout=seconds)

    async def wait(self) -> None:
        told = self._told = asyncio.get_running_loop().create_future()
        if not self.is_over:
            await told

    def require_success(self) -> None:
        """Raises: what the work raised."""
        if self._fault is not None:
            raise self._fault


def _tell(told: _Told) -> None:
    if not told.done():
        told.set_result(None)
