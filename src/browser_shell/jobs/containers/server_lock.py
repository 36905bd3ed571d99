"""Whether the server that made a container is still there: it holds a lock that the kernel drops when it dies."""

from __future__ import annotations

import fcntl
import os
import stat
from enum import Enum
from pathlib import Path

from browser_shell.core.errors import SandboxUnavailable


class ServerState(Enum):
    """What can be known of another server."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"
    """Its lock cannot be read here: it may run elsewhere, and share only the engine."""


class ServerLock:
    """Held from the start of a server to its end, however it ends. `acquire` once; `release` on a clean stop."""

    def __init__(self, directory: Path, server_id: str) -> None:
        self.server_id = server_id
        self.path = directory.absolute() / f"{server_id}.lock"
        self._held: int | None = None

    def acquire(self) -> None:
        """Raises: SandboxUnavailable when the directory cannot be written or the id is taken."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            held = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SandboxUnavailable(f"the lock of this server cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise SandboxUnavailable("another server has the same id") from error
        if not self._is_still_at(held):
            os.close(held)
            raise SandboxUnavailable("the lock of this server was removed while it was taken; start again")
        self._held = held

    def _is_still_at(self, held: int) -> bool:
        try:
            return os.path.samestat(os.fstat(held), self.path.stat())
        except FileNotFoundError:
            return False

    @property
    def held(self) -> bool:
        return self._held is not None

    def release(self) -> None:
        if self._held is not None:
            # Removed while held, so that nobody can take a file for a lock that is no longer one.
            self.path.unlink(missing_ok=True)
            os.close(self._held)
            self._held = None


def state_of(lock_path: Path) -> ServerState:
    """Reads another server's lock without waiting for anything."""
    try:
        opened = os.open(lock_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ServerState.UNKNOWN
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return ServerState.UNKNOWN
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return ServerState.ALIVE
    except OSError:
        return ServerState.UNKNOWN
    else:
        return ServerState.GONE
    finally:
        os.close(opened)


def forget_gone_servers(directory: Path) -> None:
    """Removes the locks that killed servers left in `directory`."""
    for path in directory.glob("*.lock"):
        if state_of(path) is ServerState.GONE:
            path.unlink(missing_ok=True)
