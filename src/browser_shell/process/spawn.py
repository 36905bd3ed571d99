"""Starts programs: argv tuples, listed environments, no shell, and an end for everything that was begun."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import Process

from browser_shell.core.errors import ExecutionTimedOut, SandboxUnavailable
from browser_shell.process.accounts import Account
from browser_shell.process.conversation import Bounds, Conversation, ProcessOutput, close_pipes, signal_group

_REAP_SECONDS = 3.0
_REAP_POLL_SECONDS = 0.005
SETPRIV = "/usr/bin/setpriv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One short-lived program."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    bounds: Bounds
    account: Account | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedProcess:
    """A program that was started and waits for its input."""

    process: subprocess.Popen[bytes]
    command: Command

    @property
    def waits(self) -> bool:
        """Whether it still does."""
        return self.process.poll() is None


def begin(command: Command) -> StartedProcess:
    """Starts a command without giving it its input. Whoever begins it calls `finish` or `discard`.

    It is back as soon as the child has become the program.

    Raises: SandboxUnavailable.
    """
    try:
        process = subprocess.Popen(
            # Not by `user=`: CPython then forks instead of vforking, and copying a server's page tables, with the page
            # faults that follow, costs more than half of a call.
            (*_drop_to(command.account), *command.argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
            umask=0o077,
        )
    except OSError as cause:
        raise SandboxUnavailable(f"cannot start {Path(command.argv[0]).name}: {cause.strerror}") from cause
    return StartedProcess(process=process, command=command)


async def finish(begun: StartedProcess, stdin: bytes, *, seconds: float) -> ProcessOutput:
    """Gives a begun command its input and waits for its end, or for its line where one line is its answer.

    Raises: ExecutionTimedOut. Then, and when cancelled, nothing of the command is left.
    """
    talk = Conversation(begun.process, begun.command.bounds)
    try:
        return await talk.hold(stdin, seconds=seconds)
    except BaseException as fault:
        try:
            await _end_group(begun.process)
        finally:
            talk.leave()
        if isinstance(fault, TimeoutError):
            raise ExecutionTimedOut(f"not finished after {seconds:.0f} s") from fault
        raise


async def discard(begun: StartedProcess) -> None:
    """Ends a begun command that was never given its input."""
    await _end_group(begun.process)
    close_pipes(begun.process)


def _drop_to(account: Account | None) -> tuple[str, ...]:
    """The words before a command that take the server's privileges from it; none when the server has none itself."""
    if account is None:
        return ()
    ids = (f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--inh-caps=-all")
    return (SETPRIV, *ids, "--no-new-privs", "--")


async def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Leaves no process of the group behind. Shielded and bounded: it also runs when the caller is cancelled."""
    if process.poll() is not None:
        return
    with anyio.move_on_after(_REAP_SECONDS, shield=True):
        signal_group(process.pid, signal.SIGKILL)
        while process.poll() is None:  # noqa: ASYNC110  A killed process needs no more than a moment.
            await anyio.sleep(_REAP_POLL_SECONDS)


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
