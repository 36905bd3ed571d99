"""How a server that was started as root stops being root."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.accounts import Account

_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522
_LEVELS = 24
"""Deeper than a server's own folders go. A browser that has been taken over can make them go deeper without end."""


def give_up_root(account: Account, *, groups: tuple[int, ...] = ()) -> None:
    """Becomes the account for good, with no groups but its own and `groups`.

    What stays is the right to read: the code and the interpreter may lie in a folder that only root can enter. Programs
    that this server starts do not have it, because a capability that is not inheritable ends with an exec.

    Raises: ConfigurationInvalid.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups(list(groups))
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    keep = 1 << _CAP_DAC_READ_SEARCH
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    # Effective, permitted, inheritable; the upper half of each follows.
    if libc.capset(header, struct.pack("6I", keep, keep, 0, 0, 0, 0)) != 0:
        raise ConfigurationInvalid("the server cannot give up root; start it as an ordinary user")
    libc.prctl(_PR_SET_KEEPCAPS, 0, 0, 0, 0)
    shut_out_siblings()


def shut_out_siblings() -> None:
    """Chromium and the driver run as the same account, and must not look into this process."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def hand_over(directory: Path, account: Account, *, beside: tuple[str, ...] = ()) -> Path:
    """Makes a directory, with what earlier servers left in it, the account's own; `beside` stays as it is.

    Raises: ConfigurationInvalid for a directory that holds anything else: somebody meant another one.
    """
    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    strange = [entry.name for entry in directory.iterdir() if not entry.name.isdigit() and entry.name not in beside]
    if strange or directory.is_symlink():
        raise ConfigurationInvalid(
            f"{directory}: must be a directory of this server's own, but is a link or holds {sorted(strange)[:3]}"
        )
    try:
        _give(directory, account, levels=_LEVELS, beside=beside)
        os.chown(directory, account.uid, account.gid, follow_symlinks=False)
    except OSError as cause:
        raise ConfigurationInvalid(f"{directory}: cannot be made the account {account.name}'s: {cause}") from cause
    return directory


def _give(
    folder: str | Path, account: Account, *, levels: int, beside: tuple[str, ...] = (), inside: int | None = None
) -> None:
    """Root does this where others may be at work, so by open folders only: a path can become another on the way."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
    try:
        with os.scandir(handle) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name not in beside]
        for name, is_folder in found:
            if is_folder and levels > 0:
                _give(name, account, levels=levels - 1, inside=handle)
            os.chown(name, account.uid, account.gid, dir_fd=handle, follow_symlinks=False)
    finally:
        os.close(handle)


def claim_directory(directory: Path, account: Account) -> None:
    """Makes a directory the account's own when it is new, empty, or its own already.

    Raises: ConfigurationInvalid.
    """
    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    found = directory.lstat()
    if directory.is_symlink() or (found.st_uid != account.uid and any(directory.iterdir())):
        raise ConfigurationInvalid(f"{directory}: must be a directory of the account {account.name}, and is not")
    os.chown(directory, account.uid, account.gid, follow_symlinks=False)
    directory.chmod(0o700)


def group_for_socket(socket: Path, account: Account) -> tuple[int, ...]:
    """The one group that lets the account reach a socket; none when it needs none.

    Raises: ConfigurationInvalid when only root can reach it.
    """
    try:
        found = socket.stat()
    except OSError as cause:
        raise ConfigurationInvalid(f"the engine's socket {socket}: {cause.strerror}") from cause
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigurationInvalid(f"the engine's socket {socket}: is no socket")
    if found.st_mode & stat.S_IWOTH or (found.st_uid == account.uid and found.st_mode & stat.S_IWUSR):
        return ()
    if found.st_gid == account.gid and found.st_mode & stat.S_IWGRP:
        return ()
    if found.st_gid == 0 or not found.st_mode & stat.S_IWGRP:
        raise ConfigurationInvalid(
            f"the engine's socket {socket} is for root alone, and this server does not stay root; "
            f"give it a group of its own (chgrp, chmod 660), or start the server as an ordinary user"
        )
    return (found.st_gid,)
