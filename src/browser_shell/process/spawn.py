"""Start programs: argv tuples, a listed environment, no shell, and a bounded end for each of them."""

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
from browser_shell.process.accounts import Account

_REAP_SECONDS = 3.0
SETPRIV = "/usr/bin/setpriv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A short-lived program without input."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    max_output_bytes: int
    """Bound for each of stdout and stderr; the rest is read and discarded."""
    account: Account | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOutput:
    """Exit code and output of a command that has ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes


async def run(command: Command, *, seconds: float) -> ProcessOutput:
    """Run a command to its end.

    Raises: SandboxUnavailable when it cannot be started, ExecutionTimedOut. After an error or a cancellation, no
    process of the command's group is left.
    """
    prefix = _setpriv(command.account) if command.account is not None else ()
    process = await _open((*prefix, *command.argv), command, subprocess.PIPE)
    try:
        with anyio.fail_after(seconds):
            async with anyio.create_task_group() as readers:
                stdout = _BoundedOutput(process.stdout, command.max_output_bytes)
                stderr = _BoundedOutput(process.stderr, command.max_output_bytes)
                readers.start_soon(stdout.read_to_end)
                readers.start_soon(stderr.read_to_end)
            exit_code = await process.wait()
        return ProcessOutput(exit_code=exit_code, stdout=bytes(stdout.content), stderr=bytes(stderr.content))
    except BaseException as error:
        await stop(process, grace_seconds=0)
        if isinstance(error, TimeoutError):
            raise ExecutionTimedOut(f"not finished after {seconds:.0f} s") from error
        raise
    finally:
        await process.aclose()


class _BoundedOutput:
    """The first bytes of a stream. Reads the rest too, so that the program never blocks on a full pipe."""

    def __init__(self, stream: ByteReceiveStream | None, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self.content = bytearray()

    async def read_to_end(self) -> None:
        if self._stream is not None:
            async for part in self._stream:
                self.content += part[: self._max_bytes - len(self.content)]


def _setpriv(account: Account | None, *options: str) -> tuple[str, ...]:
    """Arguments in front of a command that make it run as the account and give up new privileges.

    The `user=` argument of Popen is no alternative: CPython then forks instead of using vfork, which copies the
    server's page tables.
    """
    switch = (
        (f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--inh-caps=-all") if account else ()
    )
    return (SETPRIV, *switch, "--no-new-privs", *options, "--")


async def _open(
    argv: tuple[str, ...], program: Command | Service, output: int | IO[bytes], pass_fds: tuple[int, ...] = ()
) -> Process:
    try:
        # Shielded: a cancellation before the return would leave a process that nothing refers to.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=program.cwd,
                env=program.env,
                start_new_session=True,
                umask=0o077,
                pass_fds=pass_fds,
            )
    except OSError as cause:
        name = program.name if isinstance(program, Service) else Path(program.argv[0]).name
        raise SandboxUnavailable(f"cannot start {name}: {cause.strerror}") from cause
    return process


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A long-lived program. The kernel ends it when this server dies, also by SIGKILL."""

    name: str
    """As error messages name it."""
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    account: Account | None
    output: IO[bytes]
    pass_fds: tuple[int, ...] = ()


async def start(service: Service) -> Process:
    """Start a service in a process group of its own, with SIGKILL as its parent-death signal.

    Raises: SandboxUnavailable.
    """
    # The kernel clears the parent-death signal when a process changes its user, so one program does both, in order.
    argv = (*_setpriv(service.account, "--pdeathsig=KILL"), *service.argv)
    return await _open(argv, service, service.output, service.pass_fds)


async def stop(process: Process, *, grace_seconds: float) -> None:
    """Send SIGTERM to the process group, and SIGKILL after the grace period."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            signal_group(process.pid, signal.SIGTERM)
            with anyio.move_on_after(grace_seconds):
                await process.wait()
        signal_group(process.pid, signal.SIGKILL)
        with anyio.move_on_after(_REAP_SECONDS):
            await process.wait()


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal the process group that `pid` leads. A group without processes is no error."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return
