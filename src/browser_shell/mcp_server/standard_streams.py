"""Standard input and output as lines of a protocol.

Nothing here can keep the process from ending. A thread that reads, as the SDK's transport has one, ends only when the
client writes or goes; so input is read when the event loop says that there is some.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

import anyio
from anyio import to_thread

from browser_shell.core.errors import ConfigurationInvalid

_CHUNK_BYTES = 64 * 1024
_FIRST_FREE = 3


@dataclass(frozen=True, slots=True)
class Wire:
    """The two files by which the client is reached."""

    incoming: int
    outgoing: int


def take_standard_streams() -> Wire:
    """Standard input and output, under numbers that nobody else knows. Raises: ConfigurationInvalid.

    What a plugin or a program that was started prints then goes to standard error, and whoever reads finds the end.
    It stays so: what is still to be printed when the process ends is not for the client either.
    """
    if sys.stdin is None or sys.stdout is None:
        raise ConfigurationInvalid("stdio: standard input and output must be open")
    wire = Wire(*(fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for number in (0, 1)))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing if sys.stderr is None else 2, 1)
    os.close(nothing)
    return wire


async def read_lines(file: int, *, max_bytes: int) -> AsyncGenerator[bytes | None, None]:
    """Each line without its end, the last one also if it has none. None for one that is longer, which is not kept."""
    kept, too_long = bytearray(), False
    while chunk := await _read(file):
        *ends, beginning = chunk.split(b"\n")
        for end in ends:
            kept += end
            yield None if too_long or len(kept) > max_bytes else bytes(kept)
            kept, too_long = bytearray(), False
        kept += beginning
        if len(kept) > max_bytes:
            kept, too_long = bytearray(), True
    if kept or too_long:
        yield None if too_long else bytes(kept)


async def _read(file: int) -> bytes:
    """What has come; b"" at the end, which a terminal that hung up and a socket that was reset are too."""
    while True:
        try:
            await anyio.wait_readable(file)
        except PermissionError:
            # So the kernel says that this is a plain file, or /dev/null: nobody needs to wait for what these hold.
            with suppress(OSError):
                return await to_thread.run_sync(os.read, file, _CHUNK_BYTES)
            return b""
        try:
            return os.read(file, _CHUNK_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return b""


async def write(file: int, data: bytes) -> None:
    """Writes everything. Raises: OSError when the reader has gone.

    In a thread, since a file that other programs have too may not be made one that never blocks. And in one that the
    process does not wait for at its end: a client that has stopped reading holds it up until that client goes.
    """
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def tell(fault: OSError | None) -> None:
        if written.done():
            return  # Cancelled.
        if fault is None:
            written.set_result(None)
        else:
            written.set_exception(fault)

    def work() -> None:
        fault: OSError | None = None
        try:
            _write_all(file, data)
        except OSError as found:
            fault = found
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(tell, fault)

    Thread(target=work, name="standard output", daemon=True).start()
    await written


def _write_all(file: int, data: bytes) -> None:
    unsent = memoryview(data)
    while unsent:
        try:
            unsent = unsent[os.write(file, unsent) :]
        except BlockingIOError:  # Whoever gave us the file wants it so.
            room = select.poll()
            room.register(file, select.POLLOUT)
            room.poll()
