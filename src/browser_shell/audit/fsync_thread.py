"""The thread that flushes the log to disk. It starts with the log, so that a flush does not need a new thread."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

_STOP_SECONDS = 5.0


class FsyncThread:
    """Run blocking functions one after another in a daemon thread."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], None], Future[None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread unless it runs. Raises: OSError when the machine has no thread left."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="audit-fsync", daemon=True)
            try:
                thread.start()
            except RuntimeError as cause:
                raise OSError(errno.EAGAIN, "no thread to flush the audit log") from cause
            self._thread = thread

    async def run(self, function: Callable[[], None]) -> None:
        """Wait for a function. Raises: OSError as `start` does; any exception of the function."""
        self.start()
        future: Future[None] = Future()
        self._queue.put((function, future))
        await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Wait for running functions, but not for a disk that hangs."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(_STOP_SECONDS)
            self._thread = None

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            function, future = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                function()
            except BaseException as error:  # noqa: BLE001  raised again in the waiting task
                future.set_exception(error)
            else:
                future.set_result(None)
