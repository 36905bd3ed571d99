"""The folders that each browser gets anew: its profile, and what it has in place of /tmp."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

import structlog

from browser_shell.browser.chromium.process import ChromiumSettings
from browser_shell.core.errors import BrowserUnavailable, ConfigurationInvalid
from browser_shell.process.accounts import make_private_directory

log = structlog.get_logger()


def make_fresh_folders(settings: ChromiumSettings) -> None:
    """Each browser starts on fresh ones, so that no lock of a killed browser is in its way, or stays behind.

    Raises: BrowserUnavailable.
    """
    try:
        _remove_whatever(settings.profile)
        _remove_whatever(settings.temporary)
        make_private_directory(settings.temporary, owner=settings.account)
    except (OSError, ConfigurationInvalid) as cause:
        log.warning("browser_directories_failed", fault=str(cause))
        raise BrowserUnavailable("there are no folders for a browser; see the server's log") from cause


def _remove_whatever(path: Path) -> None:
    """Also what a browser that has been taken over may have put there: it has the account that owns these folders.

    What cannot be removed is out of the way at least. Raises: OSError.
    """
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    with suppress(OSError, RecursionError):
        if aside.is_symlink() or not aside.is_dir():
            aside.unlink()
            return
        _set_mode(aside, 0o700)  # A temporary folder is sealed.
        shutil.rmtree(aside, ignore_errors=True)


def _set_mode(folder: Path, mode: int) -> None:
    """Of the folder itself, never of what a link in its place leads to. Raises: OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def seal_temporary(settings: ChromiumSettings) -> None:
    """From here on Chromium begins no file there.

    It begins every download with one, also a download that it then refuses: while it cannot, a page's bytes never come
    to the disk that way. All that it needs there itself is the lock that it makes at its start.

    Raises: BrowserUnavailable.
    """
    try:
        _set_mode(settings.temporary, 0o500)
    except OSError as cause:
        log.warning("temporary_folder_not_sealed", fault=str(cause))
        raise BrowserUnavailable("the browser's temporary folder cannot be shut; see the server's log") from cause
