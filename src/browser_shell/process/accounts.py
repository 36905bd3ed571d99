"""Unprivileged accounts: dropping root, and the ownership of directories."""

from __future__ import annotations

import ctypes
import os
import pwd
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid

# From linux/prctl.h and linux/capability.h.
_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_CAP_DAC_READ_SEARCH = 2
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_MAX_DEPTH = 24
"""Deeper than the directories of a server. A compromised browser process can nest directories without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account to drop to. Where None is accepted, the process is unprivileged already and keeps its account."""

    name: str
    uid: int
    gid: int


def account_to_drop_to(name: str) -> Account | None:
    """Look up the account for a server that was started as root; None for a server that is not root.

    Raises: ConfigurationInvalid when the server is root and there is no such unprivileged account.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(name)
    except KeyError as missing:
        raise ConfigurationInvalid(
            f"BROWSER_SHELL_USER: there is no account {name!r}, and Chromium must not run as root. "
            f"Make one: useradd --system --user-group --no-create-home --shell /usr/sbin/nologin {name}"
        ) from missing
    if entry.pw_uid == 0:
        raise ConfigurationInvalid("BROWSER_SHELL_USER: names root; Chromium must not run as root")
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def give_up_root(account: Account, *, groups: tuple[int, ...] = ()) -> None:
    """Switch to the account permanently, with `groups` as the only supplementary groups.

    CAP_DAC_READ_SEARCH is kept, because the code and the interpreter may lie in a directory that only root can enter.
    It is not inheritable, so programs that this server starts do not have it.

    Raises: ConfigurationInvalid.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups(list(groups))
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    kept = 1 << _CAP_DAC_READ_SEARCH
    header = struct.pack("Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable sets: first the lower 32 bits of each, then the upper ones.
    if libc.capset(header, struct.pack("6I", kept, kept, 0, 0, 0, 0)) != 0:
        raise ConfigurationInvalid("the server cannot give up root; start it as an ordinary user")
    libc.prctl(_PR_SET_KEEPCAPS, 0, 0, 0, 0)
    forbid_tracing()


def forbid_tracing() -> None:
    """Keep other processes of this account, such as Chromium, from reading this process with ptrace or /proc."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def make_private_directory(path: Path, *, owner: Account | None, mode: int = 0o700) -> Path:
    """Create `path` with exactly this owner and mode, or check and correct an existing directory.

    The parent directory must exist. Raises: ConfigurationInvalid for a link, a file or a directory of another account.
    """
    with suppress(FileExistsError):
        path.mkdir(mode=mode)
    status = path.lstat()
    trusted_uids = {os.geteuid()} | ({owner.uid} if owner else set())
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in trusted_uids:
        raise ConfigurationInvalid(
            f"{path}: must be a directory of this server's own account; remove it and start again"
        )
    if owner is not None:
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)
    path.chmod(mode)
    return path


def transfer_directory(directory: Path, account: Account, *, excluded: tuple[str, ...] = ()) -> Path:
    """Make the account the owner of a directory and of everything that earlier servers left in it.

    Entries of the directory named in `excluded` keep their owner.

    Raises: ConfigurationInvalid for a directory with other entries, which is probably named by mistake.
    """
    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    foreign = [entry.name for entry in directory.iterdir() if not entry.name.isdigit() and entry.name not in excluded]
    if foreign or directory.is_symlink():
        raise ConfigurationInvalid(
            f"{directory}: must be a directory of this server's own, but is a link or holds {sorted(foreign)[:3]}"
        )
    try:
        _chown_content(directory, account, depth=_MAX_DEPTH, excluded=excluded)
        os.chown(directory, account.uid, account.gid, follow_symlinks=False)
    except OSError as cause:
        raise ConfigurationInvalid(f"{directory}: cannot be made the account {account.name}'s: {cause}") from cause
    return directory


def _chown_content(
    directory: str | Path, account: Account, *, depth: int, excluded: tuple[str, ...] = (), parent: int | None = None
) -> None:
    """Change owners relative to open directories. A path could be replaced by a link while root walks the tree."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        with os.scandir(descriptor) as scan:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan]
        for name, is_directory in entries:
            if name in excluded:
                continue
            if is_directory and depth > 0:
                _chown_content(name, account, depth=depth - 1, parent=descriptor)
            os.chown(name, account.uid, account.gid, dir_fd=descriptor, follow_symlinks=False)
    finally:
        os.close(descriptor)


def claim_directory(directory: Path, account: Account) -> None:
    """Make a directory private to the account. It must be new, empty or owned by the account already.

    Raises: ConfigurationInvalid.
    """
    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    if directory.is_symlink() or (directory.lstat().st_uid != account.uid and any(directory.iterdir())):
        raise ConfigurationInvalid(f"{directory}: must be a directory of the account {account.name}, and is not")
    os.chown(directory, account.uid, account.gid, follow_symlinks=False)
    directory.chmod(0o700)


def group_for_socket(socket: Path, account: Account) -> tuple[int, ...]:
    """Return the group that the account needs to connect to a Unix socket; empty when it needs none.

    Raises: ConfigurationInvalid when only root can connect.
    """
    try:
        status = socket.stat()
    except OSError as cause:
        raise ConfigurationInvalid(f"the engine's socket {socket}: {cause.strerror}") from cause
    if not stat.S_ISSOCK(status.st_mode):
        raise ConfigurationInvalid(f"the engine's socket {socket}: is no socket")
    if status.st_mode & stat.S_IWOTH or (status.st_uid == account.uid and status.st_mode & stat.S_IWUSR):
        return ()
    if status.st_gid == account.gid and status.st_mode & stat.S_IWGRP:
        return ()
    if status.st_gid == 0 or not status.st_mode & stat.S_IWGRP:
        raise ConfigurationInvalid(
            f"the engine's socket {socket} is for root alone, and this server does not stay root; "
            f"give it a group of its own (chgrp, chmod 660), or start the server as an ordinary user"
        )
    return (status.st_gid,)
