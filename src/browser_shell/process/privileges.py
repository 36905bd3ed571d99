"""How a server that was started as root stops being root."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.account import Account

_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522


def give_up_root(account: Account) -> None:
    """Becomes the account for good.

    What stays is the right to read: the code and the interpreter may lie in a folder that only root can enter. Programs
    that this server starts do not have it, because a capability that is not inheritable ends with an exec.

    Raises: ConfigurationInvalid.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
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


def hand_over(directory: Path, account: Account) -> Path:
    """Makes a directory, with what earlier servers left in it, the account's own.

    Raises: ConfigurationInvalid for a directory that holds anything else: somebody meant another one.
    """
    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    strange = [entry.name for entry in directory.iterdir() if not entry.name.isdigit()]
    if strange or directory.is_symlink():
        raise ConfigurationInvalid(
            f"{directory}: must be a directory of this server's own, but is a link or holds {sorted(strange)[:3]}"
        )
    for folder, names, files in os.walk(directory):
        for name in (".", *names, *files):
            os.chown(Path(folder) / name, account.uid, account.gid, follow_symlinks=False)
    return directory
