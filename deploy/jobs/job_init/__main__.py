"""Process 1 of a job's container: runs one program, ends all it left behind, then hands /output to the server.

The program's output goes to the container's standard error. The container's standard output is for the hand-over alone
and the program has no way to it. What is written there is described in execution/containers/handover.py of the server,
which believes none of it.
"""

import ctypes
import os
import signal
import stat
import struct
import sys
import time
from typing import NoReturn

import syscall_filter

RECORD = struct.Struct(">cHQ")
MAGIC = b"browser-shell hand-over 1\n"
MAX_DEPTH = 32
MAX_PATH_BYTES = 1024
CHUNK_BYTES = 65536
PR_SET_DUMPABLE = 4
OUTLIVED_ITS_TIME = 124


class Handover:
    """Writes what lies under /output to standard output, never following a link, within what was granted."""

    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self._bytes_left = max_bytes
        self._entries_left = max_entries

    def send(self, directory: str) -> None:
        self._write(MAGIC)
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        room = os.fstatvfs(root)
        self._walk(root, b"", 1)
        full = room.f_bavail == 0 or (room.f_files > 0 and room.f_favail == 0)
        words = [b"full"] * full + [b"out-of-memory"] * memory_ran_out()
        self._record(b"E", b" ".join(words), 0)

    def _walk(self, directory: int, above: bytes, depth: int) -> None:
        with os.scandir(directory) as entries:
            for entry in entries:
                if self._entries_left == 0:
                    return
                self._entries_left -= 1
                if self._entries_left == 0:
                    self._record(b"M", above, 0)
                    return
                self._entry(directory, os.fsencode(entry.name), above, depth)
        os.close(directory)

    def _entry(self, directory: int, name: bytes, above: bytes, depth: int) -> None:
        path = above + b"/" + name if above else name
        if len(path) > MAX_PATH_BYTES or depth > MAX_DEPTH:
            self._record(b"T", path[:MAX_PATH_BYTES], 0)
            return
        try:
            # O_NONBLOCK: opening a FIFO must not wait for its other end.
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        except OSError:
            self._record(self._kind_of(name, directory), path, 0)
            return
        facts = os.fstat(opened)
        if stat.S_ISDIR(facts.st_mode):
            self._record(b"D", path, 0)
            self._walk(opened, path, depth + 1)
            return
        try:
            self._file(opened, path, facts)
        finally:
            os.close(opened)

    def _kind_of(self, name: bytes, directory: int) -> bytes:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        return b"L" if stat.S_ISLNK(mode) else b"U" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else b"S"

    def _file(self, opened: int, path: bytes, facts: os.stat_result) -> None:
        if not stat.S_ISREG(facts.st_mode):
            self._record(b"S", path, 0)
            return
        if facts.st_size > self._bytes_left:
            self._record(b"B", path, 0)
            return
        self._bytes_left -= facts.st_size
        self._record(b"F", path, facts.st_size)
        left = facts.st_size
        while left > 0:
            # Nothing else runs any more, so a file cannot shrink; if one did, zeros keep the promised length.
            chunk = os.read(opened, min(left, CHUNK_BYTES)) or bytes(min(left, CHUNK_BYTES))
            self._write(chunk)
            left -= len(chunk)

    def _record(self, kind: bytes, path: bytes, size: int) -> None:
        self._write(RECORD.pack(kind, len(path), size) + path)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def memory_ran_out() -> bool:
    """Whether the kernel killed a process of this container for memory. Podman tells it of this process only."""
    for counts in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(counts, encoding="ascii") as lines:
                return any(line.startswith("oom_kill ") and int(line.split()[1]) > 0 for line in lines)
        except FileNotFoundError:
            continue
    return False


def set_dumpable(value: int) -> None:
    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, value, 0, 0, 0) != 0:
        raise OSError("prctl failed")


def become(argv: list[str]) -> NoReturn:
    """Turns the forked child into the program."""
    try:
        os.setsid()
        os.dup2(2, 1)
        set_dumpable(1)
        # When memory runs out the program is to go, not the process that keeps its output.
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("500")
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def run(argv: list[str], seconds: float) -> int:
    """The program's exit code as a shell would tell it; 124 when it outlived its time or was told to stop."""
    awaited = {signal.SIGCHLD, signal.SIGTERM}
    # All of them: the program may send this process any signal that it would act on.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    program = os.fork()
    if program == 0:
        become(argv)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        arrived = signal.sigtimedwait(awaited, left)
        if arrived is None or arrived.si_signo == signal.SIGTERM:
            break
        while (ended := reap(os.WNOHANG)) is not None:
            if ended[0] == program:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code
    return OUTLIVED_ITS_TIME


def reap(options: int) -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, options)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def end_everything() -> None:
    """Kills every other process of the container. Orphans are this one's children: waiting ends when all are gone."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    while reap(0) is not None:
        pass


def main() -> int:
    # Without this the program, which has the same user, could trace this process or write to its standard output.
    set_dumpable(0)
    syscall_filter.install()
    seconds, max_bytes, max_entries, argv = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    code = run(argv, seconds)
    end_everything()
    try:
        Handover(max_bytes, max_entries).send("/output")
    except OSError as error:
        # The server sees that the end is missing; the program's exit code is still true.
        os.write(2, f"hand-over: {error}\n".encode())
    return code


sys.exit(main())
