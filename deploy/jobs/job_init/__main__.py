"""Process 1 of a job's container: runs one program, kills all remaining processes, then hands over /output.

The program's output goes to the container's standard error. Standard output is reserved for the hand-over, and the
program has no access to it. jobs/containers/handover.py of the server describes the format and trusts none of it.
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
TIMEOUT_EXIT_CODE = 124


class Handover:
    """Writes the files under /output to standard output. Follows no link and stays within the limits."""

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
            # O_NONBLOCK: opening a FIFO must not block.
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
            # No other process runs, so a file cannot shrink. If one did, zeros fill the announced length.
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
    """Whether the kernel killed a process of this container for memory. Podman reports it for process 1 only."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path, encoding="ascii") as lines:
                return any(line.startswith("oom_kill ") and int(line.split()[1]) > 0 for line in lines)
        except FileNotFoundError:
            continue
    return False


def set_dumpable(value: int) -> None:
    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, value, 0, 0, 0) != 0:
        raise OSError("prctl failed")


def become(argv: list[str]) -> NoReturn:
    """Replace the forked child with the program."""
    try:
        os.setsid()
        os.dup2(2, 1)
        set_dumpable(1)
        # When memory runs out, the kernel must kill the program and not process 1.
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
    """Return the exit code as a shell does; 124 after a timeout or SIGTERM."""
    awaited = {signal.SIGCHLD, signal.SIGTERM}
    # Block all signals: the program may send any of them to this process.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    program = os.fork()
    if program == 0:
        become(argv)
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        arrived = signal.sigtimedwait(awaited, left)
        if arrived is None or arrived.si_signo == signal.SIGTERM:
            break
        while (ended := reap(os.WNOHANG)) is not None:
            if ended[0] == program:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code
    return TIMEOUT_EXIT_CODE


def reap(options: int) -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, options)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def kill_everything() -> None:
    """Kill every other process of the container. All orphans are children of process 1, so waiting reaps them all."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    while reap(0) is not None:
        pass


def main() -> int:
    # Without this the program, which has the same uid, could trace this process or write to its standard output.
    set_dumpable(0)
    syscall_filter.install()
    seconds, max_bytes, max_entries, argv = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    code = run(argv, seconds)
    kill_everything()
    try:
        Handover(max_bytes, max_entries).send("/output")
    except OSError as error:
        # The server notices the missing end record. The exit code is still valid.
        os.write(2, f"hand-over: {error}\n".encode())
    return code


sys.exit(main())
