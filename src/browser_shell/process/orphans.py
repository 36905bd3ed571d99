"""Identities of processes, services that outlive a killed server, and orphans that this process reaps."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from browser_shell.process.files import create_file

_PR_SET_CHILD_SUBREAPER = 36  # From linux/prctl.h.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process id with its start time, which a later process with the same id does not share."""

    pid: int
    start_ticks: int
    """Clock ticks from the boot of the machine to the start of the process."""


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return the identity of a live process; None when it has ended, also while it is a zombie."""
    fields = _stat_fields(pid)
    if not fields or fields[0] == b"Z":
        return None
    return ProcessIdentity(pid=pid, start_ticks=int(fields[19]))


def is_alive(identity: ProcessIdentity) -> bool:
    return identity_of(identity.pid) == identity


def runs_program(pid: int, program: Path) -> bool:
    """Check by inode whether the process executes this file."""
    try:
        actual, expected = Path(f"/proc/{pid}/exe").stat(), program.stat()
    except OSError:
        return False
    return (actual.st_dev, actual.st_ino) == (expected.st_dev, expected.st_ino)


def kill_now(identity: ProcessIdentity) -> None:
    """Send SIGKILL to this process, and never to a later process with the same pid."""
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        if is_alive(identity):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(pidfd)


def limit_memory(identity: ProcessIdentity, max_bytes: int) -> bool:
    """Lower RLIMIT_DATA of a process. False when it has ended, or when this account may not change its limits."""
    if not is_alive(identity):
        return False
    try:
        _, hard = resource.prlimit(identity.pid, resource.RLIMIT_DATA)
        limit = max_bytes if hard == resource.RLIM_INFINITY else min(hard, max_bytes)
        resource.prlimit(identity.pid, resource.RLIMIT_DATA, (limit, limit))
    except OSError:
        return False
    return True


def save_identity(path: Path, pid: int) -> None:
    """Write the identity of a service to a file, from which the next server ends it if this server is killed.

    Raises: OSError.
    """
    identity = identity_of(pid)
    if identity is not None:
        with create_file(path) as file:
            file.write(f"{identity.pid} {identity.start_ticks}\n".encode())


def end_saved_process(path: Path) -> bool:
    """Kill the process group of a saved identity and remove the file. True when the process was alive."""
    try:
        pid, start_ticks = path.read_text(encoding="utf-8").split()
        identity = ProcessIdentity(pid=int(pid), start_ticks=int(start_ticks))
        was_alive = is_alive(identity)
        if was_alive:
            try:
                os.killpg(identity.pid, signal.SIGKILL)
            except ProcessLookupError:
                kill_now(identity)
    except (OSError, ValueError):
        was_alive = False
    with suppress(OSError):
        path.unlink()
    return was_alive


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (a subreaper), so that this process can reap them."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap(pid: int) -> bool:
    """Reap a child that has ended. True when nothing is left to reap."""
    try:
        reaped, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return reaped == pid


def reap_adopted() -> int:
    """Reap the orphans of other programs that became children of this process; return their number.

    Direct children and the driver's daemons are left out: the code that started them waits for them. A daemon is
    recognised by its session, which it leads itself.
    """
    own_session = os.getsid(0)
    reaped = 0
    for task in Path("/proc/self/task").iterdir():
        try:
            children = (task / "children").read_text(encoding="ascii").split()
        except OSError:
            continue
        for pid in map(int, children):
            if _zombie_session(pid) not in (None, pid, own_session):
                reaped += reap(pid)
    return reaped


def _zombie_session(pid: int) -> int | None:
    """Return the session id of a zombie; None for any other process."""
    fields = _stat_fields(pid)
    return int(fields[3]) if fields and fields[0] == b"Z" else None


def _stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the process state on; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
