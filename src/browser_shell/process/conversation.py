"""Talks with a program that was started, from its input to its end. Blocks: to be run by a thread."""

from __future__ import annotations

import os
import select
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field

from browser_shell.core.errors import SandboxUnavailable

_CHUNK_BYTES = 65536
_WRITE_BYTES = select.PIPE_BUF
"""What a pipe that is ready to be written to takes without blocking."""
_CLOSED = select.POLLHUP | select.POLLERR | select.POLLNVAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a command ended. The streams hold at most `max_output_bytes`; `truncated` says when there was more."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool


def converse(process: subprocess.Popen[bytes], stdin: bytes, max_output_bytes: int, seconds: float) -> Finished:
    """Gives the input, reads both streams to their ends, and waits for the end of the program. Closes its pipes.

    A program that closes its streams and lives on is waited for: whoever gave up ends it.

    Raises: TimeoutError when the streams have not ended after so many seconds.
    """
    try:
        out, err = _exchange(process, stdin, max_output_bytes, time.monotonic() + seconds)
        exit_code = process.wait()  # Without a time limit: with one, it sleeps between looks.
    finally:
        close_pipes(process)
    return Finished(
        exit_code=exit_code, stdout=out.content, stderr=err.content, truncated=out.overflowed or err.overflowed
    )


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


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


def _exchange(
    process: subprocess.Popen[bytes], stdin: bytes, max_output_bytes: int, deadline: float
) -> tuple[_Bounded, _Bounded]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise SandboxUnavailable("the program has no pipes")
    out, err = _Bounded(max_output_bytes), _Bounded(max_output_bytes)
    streams = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    input_pipe, unsent = process.stdin.fileno(), memoryview(stdin)
    poll = select.poll()
    poll.register(input_pipe, select.POLLOUT)
    for stream in streams:
        poll.register(stream, select.POLLIN)
    while streams:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise TimeoutError
        for pipe, event in ready:
            if pipe == input_pipe:
                unsent = unsent[_written(pipe, unsent, event) :]
                if not unsent:
                    poll.unregister(pipe)
                    process.stdin.close()
            elif part := os.read(pipe, _CHUNK_BYTES):
                streams[pipe].take(part)
            else:
                poll.unregister(pipe)
                del streams[pipe]
    return out, err


def _written(pipe: int, unsent: memoryview, event: int) -> int:
    """One that ended without reading says why by its exit code and its stderr; it needs no more input."""
    if event & _CLOSED:
        return len(unsent)
    try:
        return os.write(pipe, unsent[:_WRITE_BYTES])
    except BrokenPipeError:
        return len(unsent)
