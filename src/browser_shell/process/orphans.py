"""Finds and ends what a killed server left behind, and reaps daemons that were never our direct children."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_STAT_BYTES = 1024


def adopt_orphans() -> None:
    """Makes daemons that fork away become children of this process, so that their end can be collected."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    start_ticks: int


def mark_of(pid: int) -> ProcessIdentity | None:
    """The mark of a live process; None when there is none, or only its zombie."""
    fields = _stat_fields(pid)
    if not fields or fields[0] == b"Z":
        return None
    return ProcessIdentity(pid=pid, start_ticks=int(fields[19]))


def is_alive(mark: ProcessIdentity) -> bool:
    return mark_of(mark.pid) == mark


class LivenessProbe:
    """Tells whether one certain process still lives, by one quick question. To be closed."""

    def __init__(self, mark: ProcessIdentity) -> None:
        """Raises: ProcessLookupError when it has ended; OSError when no file is left."""
        self.mark = mark
        self._handle = os.pidfd_open(mark.pid)
        self._end = select.poll()
        self._end.register(self._handle, select.POLLIN)
        if not is_alive(mark):  # The number may have been given away before the handle was made.
            self.close()
            raise ProcessLookupError(mark.pid)

    @property
    def lives(self) -> bool:
        """A zombie does not."""
        return not self._end.poll(0)

    def close(self) -> None:
        os.close(self._handle)


def runs_program(pid: int, program: Path) -> bool:
    """Whether the process executes this very file, judged by inode."""
    try:
        running, wanted = os.stat(f"/proc/{pid}/exe"), os.stat(program)  # noqa: PTH116  asked twice a call
    except OSError:
        return False
    return (running.st_dev, running.st_ino) == (wanted.st_dev, wanted.st_ino)


def kill_now(mark: ProcessIdentity) -> None:
    """SIGKILL to exactly the marked process, not to whoever has its number now."""
    try:
        handle = os.pidfd_open(mark.pid)
    except ProcessLookupError:
        return
    try:
        if is_alive(mark):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def bound_memory(mark: ProcessIdentity, most_bytes: int) -> bool:
    """Gives a process an end to its memory. False when it has ended, or is not ours to bound."""
    if not is_alive(mark):
        return False
    try:
        _, hard = resource.prlimit(mark.pid, resource.RLIMIT_DATA)
        end = most_bytes if hard == resource.RLIM_INFINITY else min(hard, most_bytes)
        resource.prlimit(mark.pid, resource.RLIMIT_DATA, (end, end))
    except OSError:
        return False
    return True


def reap(pid: int) -> bool:
    """Collects an adopted child that has ended. True when nothing is left to collect."""
    try:
        found, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return found == pid


def save_mark(path: Path, pid: int) -> None:
    """Notes a service's mark so that the next start can end it if this server is killed."""
    mark = mark_of(pid)
    if mark is not None:
        path.write_text(f"{mark.pid} {mark.start_ticks}\n", encoding="utf-8")


def end_marked(path: Path) -> bool:
    """Ends the process noted in `path`, with its group, and forgets the note. True when something was ended."""
    try:
        pid, ticks = path.read_text(encoding="utf-8").split()
        mark = ProcessIdentity(pid=int(pid), start_ticks=int(ticks))
    except (OSError, ValueError):
        path.unlink(missing_ok=True)
        return False
    alive = is_alive(mark)
    if alive:
        try:
            os.killpg(mark.pid, signal.SIGKILL)
        except ProcessLookupError:
            kill_now(mark)
    path.unlink(missing_ok=True)
    return alive


def reap_adopted() -> int:
    """Collects what a dead program's children left us as their new parent. Returns how many.

    Our own children are waited for by whoever started them, and so are the driver's daemons: they lead sessions of
    their own, other adopted ones do not.
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
    """The session that an ended, uncollected process belonged to; None for any other process."""
    fields = _stat_fields(pid)
    return int(fields[3]) if fields and fields[0] == b"Z" else None


def _stat_fields(pid: int) -> list[bytes]:
    """What the kernel says of a process, from its state on; empty when there is none. Asked often, so by hand."""
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(handle, _STAT_BYTES).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        os.close(handle)
