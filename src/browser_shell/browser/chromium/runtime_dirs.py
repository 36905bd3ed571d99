"""The directories of one running server, and the lock that keeps a second one out of them."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process import orphans
from browser_shell.process.accounts import Account, make_private_directory

_LONGEST_SOCKET_DIRECTORY = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLayout:
    """Everything below `root` may be thrown away when no server runs."""

    root: Path
    sockets: Path
    display: Path
    profile: Path
    chromium_home: Path
    temporary: Path
    driver_home: Path
    config: Path
    artifacts: Path
    marks: Path
    logs: Path


@contextmanager
def claimed_layout(base: Path, devtools_port: int, account: Account | None) -> Iterator[RuntimeLayout]:
    """Makes the directories, for this server alone.

    Raises: ConfigurationInvalid when another server has them.
    """
    base.parent.mkdir(parents=True, exist_ok=True)
    make_private_directory(base, owner=None, mode=0o711)
    root = make_private_directory(base / str(devtools_port), owner=None, mode=0o711)
    if len(str(root)) > _LONGEST_SOCKET_DIRECTORY:
        raise ConfigurationInvalid(f"BROWSER_SHELL_RUNTIME_DIR: {root} is too long a path for sockets")
    lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise ConfigurationInvalid(
                f"another browser-shell of this account already uses DevTools port {devtools_port}; "
                "stop it, or set BROWSER_REMOTE_DEBUGGING_PORT (0 picks a free port)"
            ) from taken
        yield _make_layout(root, account)
    finally:
        os.close(lock)


def _make_layout(root: Path, account: Account | None) -> RuntimeLayout:
    def for_children(name: str) -> Path:
        return make_private_directory(root / name, owner=account)

    shutil.rmtree(root / "out", ignore_errors=True)  # Pictures that a killed server did not hand out.
    return RuntimeLayout(
        root=root,
        sockets=for_children("s"),
        display=for_children("x"),
        chromium_home=for_children("home"),
        profile=root / "home" / "profile",
        # A name of one letter: below it Chromium makes a socket with a name of 44 bytes, and 107 are all there are.
        temporary=for_children("t"),
        artifacts=for_children("out"),
        # The driver and the window manager may read these two but not write: they obey configuration found there.
        driver_home=make_private_directory(root / "empty", owner=None, mode=0o555),
        config=make_private_directory(root / "etc", owner=None, mode=0o755),
        marks=make_private_directory(root / "marks", owner=None),
        logs=make_private_directory(root / "log", owner=None),
    )


def end_leftover_services(layout: RuntimeLayout) -> list[str]:
    """Ends what a killed server left running. Returns the names."""
    return [mark.name for mark in sorted(layout.marks.iterdir()) if orphans.end_saved_process(mark)]
