"""Talks with a program that was started, from its input to its answer, and sees it out.

By the event loop's own watchers of files: a task for each pipe, or a thread, would cost a short call several turns.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from browser_shell.core.errors import SandboxUnavailable

_CHUNK_BYTES = 65536
_LEAVE_SECONDS = 3.0
_RETRY_SECONDS = 0.05
_BRIEF_SECONDS = 0.1
"""One that answers within it is not listened to for anything but its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a program may say."""

    max_output_bytes: int
    one_line: bool
    """Its answer is one line, and nothing comes after it but its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOutput:
    """How a command ended. The streams hold at most `max_output_bytes`; `truncated` says when there was more."""

    exit_code: int | None
    """None for one that has said its line and was not waited for."""
    stdout: bytes
    stderr: bytes
    truncated: bool


class Conversation:
    """With one program. Belongs to the event loop in which it was made."""

    def __init__(self, process: subprocess.Popen[bytes], bounds: Bounds) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise SandboxUnavailable("the program has no pipes")
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._one_line = bounds.one_line
        self._answer: asyncio.Future[ProcessOutput] = self._loop.create_future()
        self._input, self._unsent = process.stdin.fileno(), memoryview(b"")
        self._out_pipe, self._err_pipe = process.stdout.fileno(), process.stderr.fileno()
        self._out, self._err = _Bounded(bounds.max_output_bytes), _Bounded(bounds.max_output_bytes)
        self._kept = {self._out_pipe: self._out, self._err_pipe: self._err}
        self._heard: set[int] = set()
        """The streams that are, or were, listened to."""
        self._watched: set[int] = set()
        """What is watched now. A number that was let go of may soon be that of another program's file."""
        self._writing = False
        self._end: int | None = None
        """A file that becomes readable when the program has ended."""
        self._until = 0.0
        self._limit: asyncio.TimerHandle | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None

    async def hold(self, stdin: bytes, *, seconds: float) -> ProcessOutput:
        """Gives the input and waits for the answer. Whoever gives up waiting ends the program and calls `leave`.

        Raises: TimeoutError.
        """
        self._until = self._loop.time() + seconds
        self._limit = self._loop.call_later(min(seconds, _BRIEF_SECONDS), self._look_closer)
        for pipe in (self._input, *self._kept):
            os.set_blocking(pipe, False)
        self._listen_to(self._out_pipe)
        if not self._one_line:
            self._listen_to(self._err_pipe)
        self._unsent = memoryview(stdin)
        self._write()
        return await self._answer

    def leave(self) -> None:
        """Lets go of the program's files. To be called once it is not to be heard any more."""
        self._stop_reading()
        self._stop_writing()
        for timer in (self._limit, self._patience, self._retry):
            if timer is not None:
                timer.cancel()
        if self._end is not None:
            os.close(self._end)
            self._end = None
        close_pipes(self._process)

    def _stop_reading(self) -> None:
        for pipe in self._watched:
            self._loop.remove_reader(pipe)
        self._watched.clear()

    def _listen_to(self, pipe: int) -> None:
        if pipe not in self._heard:
            self._heard.add(pipe)
            self._watch(pipe, partial(self._read, pipe))

    def _watch(self, pipe: int, when_readable: Callable[[], None]) -> None:
        self._loop.add_reader(pipe, when_readable)
        self._watched.add(pipe)

    def _write(self) -> None:
        try:
            if self._unsent:
                self._unsent = self._unsent[os.write(self._input, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            # One that ended without reading says why by its exit code and its stderr; it needs no more input.
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._stop_writing()
            if self._process.stdin is not None:
                self._process.stdin.close()
        elif not self._writing:
            self._loop.add_writer(self._input, self._write)
            self._writing = True

    def _stop_writing(self) -> None:
        if self._writing:
            self._loop.remove_writer(self._input)
            self._writing = False

    def _read(self, pipe: int) -> None:
        try:
            part = os.read(pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return
        if part and not self._answer.done():
            self._take(pipe, part)
        elif not part:
            self._loop.remove_reader(pipe)
            self._watched.discard(pipe)
            if not self._answer.done():
                self._listen_to(self._err_pipe)  # It ends without an answer, and may have said why.
            if not self._watched:
                self._wait_for_end()

    def _take(self, pipe: int, part: bytes) -> None:
        self._kept[pipe].take(part)
        if self._one_line and pipe == self._out_pipe and part.endswith(b"\n"):
            self._tell(None)
            self._patience = self._loop.call_later(_LEAVE_SECONDS, self._end_it)

    def _tell(self, exit_code: int | None) -> None:
        if self._answer.done():
            return
        if self._limit is not None:
            self._limit.cancel()
        out, err = self._out, self._err
        self._answer.set_result(
            ProcessOutput(
                exit_code=exit_code, stdout=out.content, stderr=err.content, truncated=out.overflowed or err.overflowed
            )
        )

    def _look_closer(self) -> None:
        """It takes its time. One that is full of complaints might even be unable to go on before they are read."""
        if self._answer.done():
            return
        seconds_left = self._until - self._loop.time()
        if seconds_left > 0:
            self._limit = self._loop.call_later(seconds_left, self._look_closer)
            self._listen_to(self._err_pipe)
        else:
            self._answer.set_exception(TimeoutError())

    def _wait_for_end(self) -> None:
        if self._end is not None:
            return
        if self._process.poll() is not None:
            self._ended()
            return
        try:
            self._end = os.pidfd_open(self._process.pid)
        except OSError:  # There are no files left.
            self._retry = self._loop.call_later(_RETRY_SECONDS, self._wait_for_end)
        else:
            self._watch(self._end, self._ended)

    def _ended(self) -> None:
        exit_code = self._process.wait()
        self._tell(exit_code)
        self.leave()

    def _end_it(self) -> None:
        """Of one that has said its line. What else it says is thrown away; it has a moment to end by itself."""
        if self._process.poll() is None:
            signal_group(self._process.pid, signal.SIGKILL)
        if self._end is None:
            # Somebody else may still hold its streams open, which are otherwise the sign of its end.
            self._stop_reading()
            self._wait_for_end()


@dataclass(slots=True)
class _Bounded:
    """Keeps the first bytes of a stream, so that a flood costs time but no memory."""

    left: int
    parts: list[bytes] = field(default_factory=list)
    overflowed: bool = False

    def take(self, part: bytes) -> None:
        self.overflowed = self.overflowed or len(part) > self.left
        if self.left:
            self.parts.append(part[: self.left])
            self.left -= len(self.parts[-1])

    @property
    def content(self) -> bytes:
        return b"".join(self.parts)


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signals the group that `pid` leads; a group that is gone is fine."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return
