"""The runtime directories of one server, with a lock against a second server, and fresh ones for each browser."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from browser_shell.core.errors import BrowserUnavailable, ConfigurationInvalid
from browser_shell.process import orphans
from browser_shell.process.accounts import Account, make_private_directory

_MAX_ROOT_LENGTH = 60
"""Leaves room for the longest socket path below it. The limit of a Unix socket path is 107 bytes."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLayout:
    """Paths of the directories. Everything below `root` may be removed while no server runs."""

    account: Account | None
    """Owner of the directories that the programs write to. None for the account of the server."""
    root: Path
    sockets: Path
    display: Path
    """Holds the X cookie and the VNC socket."""
    profile: Path
    """Removed before each start, because each session has a browser context of its own."""
    chromium_home: Path
    temporary: Path
    """Chromium's TMPDIR. Read-only once the browser runs."""
    driver_home: Path
    """Empty and unwritable, so that the driver and the window manager find no configuration there."""
    config: Path
    artifacts: Path
    identities: Path
    """One file for each running service: its process identity."""
    logs: Path

    @property
    def chromium_policies(self) -> Path:
        """The directory with Chromium's managed policy, mounted over /etc/chromium in the jail."""
        return self.config / "chromium"

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
        account=account,
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


def make_fresh_directories(layout: RuntimeLayout) -> None:
    """Remove the profile and the temporary directory of an earlier browser, and create a temporary directory.

    Locks of a killed browser would keep the next one from starting. Raises: BrowserUnavailable.
    """
    try:
        _remove(layout.profile)
        _remove(layout.temporary)
        make_private_directory(layout.temporary, owner=layout.account)
    except (OSError, ConfigurationInvalid) as cause:
        log.warning("browser_directories_failed", fault=str(cause))
        raise BrowserUnavailable("the browser's directories cannot be created; see the server's log") from cause


def forbid_new_temporary_files(layout: RuntimeLayout) -> None:
    """Make the temporary directory read-only once Chromium has created its lock there.

    Chromium starts every download with a temporary file, also a download that it then refuses. Without write
    permission, no byte of a download reaches the disk.

    Raises: BrowserUnavailable.
    """
    try:
        _set_mode(layout.temporary, 0o500)
    except OSError as cause:
        log.warning("temporary_directory_chmod_failed", fault=str(cause))
        raise BrowserUnavailable(
            "the browser's temporary directory cannot be made read-only; see the server's log"
        ) from cause


def _remove(path: Path) -> None:
    """Rename an entry and remove it as far as possible.

    A compromised browser process can put anything there, such as a link or directories nested without limit. The
    rename frees the path also when the removal fails. Raises: OSError.
    """
    renamed = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.rename(renamed)
    except FileNotFoundError:
        return
    with suppress(OSError, RecursionError):
        if renamed.is_symlink() or not renamed.is_dir():
            renamed.unlink()
            return
        _set_mode(renamed, 0o700)  # Reverts `forbid_new_temporary_files`.
        shutil.rmtree(renamed, ignore_errors=True)


def _set_mode(directory: Path, mode: int) -> None:
    """Change the mode of a directory, never of the target of a link. Raises: OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
