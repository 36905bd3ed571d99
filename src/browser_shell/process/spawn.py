"""Starts programs: argv tuples, listed environments, no shell, and an end for everything that was begun."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import ByteReceiveStream, Process

from browser_shell.core.errors import ExecutionTimedOut, SandboxUnavailable
from browser_shell.process.account import Account

_CHUNK_BYTES = 65536
_REAP_SECONDS = 3.0
SETPRIV = "/usr/bin/setpriv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One short-lived program."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    max_output_bytes: int
    account: Account | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a command ended. The streams hold at most `max_output_bytes`; `truncated` says when there was more."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A program that was started and waits for its input."""

    process: Process
    command: Command


async def begin(command: Command) -> Begun:
    """Starts a command without giving it its input. Whoever begins it calls `finish` or `discard`.

    Raises: SandboxUnavailable.
    """
    return Begun(process=await _open(command), command=command)


async def finish(begun: Begun, stdin: bytes, *, seconds: float) -> Finished:
    """Gives a begun command its input and waits for its end. Raises: ExecutionTimedOut."""
    try:
        with anyio.fail_after(seconds):
            return await _converse(begun.process, stdin, begun.command.max_output_bytes)
    except TimeoutError as late:
        raise ExecutionTimedOut(f"not finished after {seconds:.0f} s") from late
    finally:
        await discard(begun)


async def discard(begun: Begun) -> None:
    """Ends a begun command, whatever state it is in."""
    await _end_group(begun.process)


async def _open(command: Command) -> Process:
    try:
        return await anyio.open_process(
            # Not by `user=`: CPython then forks instead of vforking, and copying a server's page tables, with the page
            # faults that follow, costs more than half of a call.
            (*_drop_to(command.account), *command.argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
            umask=0o077,
        )
    except OSError as cause:
        raise SandboxUnavailable(f"cannot start {Path(command.argv[0]).name}: {cause.strerror}") from cause


def _drop_to(account: Account | None) -> tuple[str, ...]:
    """The words before a command that take the server's privileges from it; none when the server has none itself."""
    if account is None:
        return ()
    ids = (f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--inh-caps=-all")
    return (SETPRIV, *ids, "--no-new-privs", "--")


class _Bounded:
    """Reads a stream to its end and keeps the first bytes, so that a flood costs time but no memory."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._parts: list[bytes] = []
        self.overflowed = False

    async def drain(self, stream: ByteReceiveStream) -> None:
        try:
            while True:
                part = await stream.receive(_CHUNK_BYTES)
                self.overflowed = self.overflowed or len(part) > self._left
                if self._left:
                    self._parts.append(part[: self._left])
                    self._left -= len(self._parts[-1])
        except anyio.EndOfStream:
            return

    @property
    def content(self) -> bytes:
        return b"".join(self._parts)


async def _converse(process: Process, stdin: bytes, max_output_bytes: int) -> Finished:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise SandboxUnavailable("the program has no pipes")
    out, err = _Bounded(max_output_bytes), _Bounded(max_output_bytes)
    async with anyio.create_task_group() as readers:
        readers.start_soon(out.drain, process.stdout)
        readers.start_soon(err.drain, process.stderr)
        try:
            await process.stdin.send(stdin)
            await process.stdin.aclose()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # It ended without reading; its exit code and stderr say why.
        exit_code = await process.wait()
    return Finished(
        exit_code=exit_code, stdout=out.content, stderr=err.content, truncated=out.overflowed or err.overflowed
    )


async def _end_group(process: Process) -> None:
    """Leaves no process of the group behind. Shielded and bounded: it also runs when the caller is cancelled."""
    with anyio.move_on_after(_REAP_SECONDS, shield=True):
        if process.returncode is None:
            signal_group(process.pid, signal.SIGKILL)
            await process.wait()
        await process.aclose()


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signals the group that `pid` leads; a group that is gone is fine."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One long-lived program. It dies with this server, also when the server is killed."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    account: Account | None
    output: IO[bytes]
    pass_fds: tuple[int, ...] = ()


async def start(service: Service) -> Process:
    """Starts a service in a group of its own, bound to this server's life by the parent-death signal.

    Raises: SandboxUnavailable.
    """
    drop: tuple[str, ...] = ()
    if service.account is not None:
        account = service.account
        drop = (f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--inh-caps=-all")
    # The kernel forgets a parent-death signal when a process changes its user, so the same program does both, in order.
    wrapped = (SETPRIV, *drop, "--no-new-privs", "--pdeathsig=KILL", "--", *service.argv)
    try:
        return await anyio.open_process(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=service.output,
            stderr=service.output,
            cwd=service.cwd,
            env=service.env,
            start_new_session=True,
            umask=0o077,
            pass_fds=service.pass_fds,
        )
    except OSError as cause:
        raise SandboxUnavailable(f"cannot start {service.name}: {cause.strerror}") from cause


async def stop(process: Process, *, grace_seconds: float) -> None:
    """Asks the group to end, then makes it."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            signal_group(process.pid, signal.SIGTERM)
            with anyio.move_on_after(grace_seconds):
                await process.wait()
        signal_group(process.pid, signal.SIGKILL)
        with anyio.move_on_after(_REAP_SECONDS):
            await process.wait()
