"""Which unprivileged account the browser, the display and the driver run as."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account to drop to. None in its place means: already unprivileged, stay as you are."""

    name: str
    uid: int
    gid: int


def account_to_drop_to(name: str) -> Account | None:
    """The account for children of a server started as root; None for a server that is not root.

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


def make_private_directory(path: Path, *, owner: Account | None, mode: int = 0o700) -> Path:
    """Makes `path` (its parent must exist) with exactly this owner and mode, and refuses one that others prepared.

    Raises: ConfigurationInvalid.
    """
    path.mkdir(mode=mode, exist_ok=True)
    found = path.lstat()
    mine = {os.geteuid()} | ({owner.uid} if owner else set())
    if path.is_symlink() or not path.is_dir() or found.st_uid not in mine:
        raise ConfigurationInvalid(
            f"{path}: must be a directory of this server's own account; remove it and start again"
        )
    if owner is not None:
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)
    path.chmod(mode)
    return path
