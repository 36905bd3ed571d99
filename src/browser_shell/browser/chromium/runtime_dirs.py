"""The runtime directories of one server, with a lock against a second server."""

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

_MAX_ROOT_LENGTH = 60
"""Leaves room for the longest socket path below it. The limit of a Unix socket path is 107 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLayout:
    """Paths of the directories. Everything below `root` may be removed while no server runs."""

    root: Path
    sockets: Path
    display: Path
    profile: Path
    chromium_home: Path
    temporary: Path
    driver_home: Path
    config: Path
    artifacts: Path
    identities: Path
    """One file for each running service: its process identity."""
    logs: Path

    @property
    def hidden_from_chromium(self) -> tuple[Path, ...]:
        """Directories that Chromium could misuse, because its account owns them, for example the driver's sockets."""
        return (self.sockets, self.driver_home, self.config, self.artifacts, self.identities, self.logs)


@contextmanager
def claimed_layout(base: Path, devtools_port: int, account: Account | None) -> Iterator[RuntimeLayout]:
    """Create the directories and hold their lock until the end of the block.

    Raises: ConfigurationInvalid when another server holds the lock.
    """
    base.parent.mkdir(parents=True, exist_ok=True)
    make_private_directory(base, owner=None, mode=0o711)
    root = make_private_directory(base / str(devtools_port), owner=None, mode=0o711)
    if len(str(root)) > _MAX_ROOT_LENGTH:
        raise ConfigurationInvalid(f"BROWSER_SHELL_RUNTIME_DIR: {root} is too long a path for sockets")
    lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as locked:
            raise ConfigurationInvalid(
                f"another browser-shell of this account already uses DevTools port {devtools_port}; "
                "stop it, or set BROWSER_REMOTE_DEBUGGING_PORT (0 picks a free port)"
            ) from locked
        yield _make_layout(root, account)
    finally:
        os.close(lock)


def _make_layout(root: Path, account: Account | None) -> RuntimeLayout:
    def make_for_account(name: str) -> Path:
        return make_private_directory(root / name, owner=account)

    shutil.rmtree(root / "out", ignore_errors=True)  # Screenshots that a killed server left behind.
    return RuntimeLayout(
        root=root,
        sockets=make_for_account("s"),
        display=make_for_account("x"),
        chromium_home=make_for_account("home"),
        profile=root / "home" / "profile",
        # The name is short, because Chromium creates a socket below it with a path of 44 bytes.
        temporary=make_for_account("t"),
        artifacts=make_for_account("out"),
        # Not writable for the driver and the window manager, which read configuration from these two.
        driver_home=make_private_directory(root / "empty", owner=None, mode=0o555),
        config=make_private_directory(root / "etc", owner=None, mode=0o755),
        identities=make_private_directory(root / "identities", owner=None),
        logs=make_private_directory(root / "log", owner=None),
    )


def end_leftover_services(layout: RuntimeLayout) -> list[str]:
    """End the services that a killed server left running; return their names."""
    return [path.name for path in sorted(layout.identities.iterdir()) if orphans.end_saved_process(path)]
