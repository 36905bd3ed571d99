"""The directories that are created for each browser process: its profile and its temporary directory."""

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


def make_fresh_directories(settings: ChromiumSettings) -> None:
    """Remove the profile and the temporary directory of an earlier browser, and create a temporary directory.

    Locks of a killed browser would keep the next one from starting. Raises: BrowserUnavailable.
    """
    try:
        _remove(settings.profile)
        _remove(settings.temporary)
        make_private_directory(settings.temporary, owner=settings.account)
    except (OSError, ConfigurationInvalid) as cause:
        log.warning("browser_directories_failed", fault=str(cause))
        raise BrowserUnavailable("the browser's directories cannot be created; see the server's log") from cause


def forbid_new_temporary_files(settings: ChromiumSettings) -> None:
    """Make the temporary directory read-only once Chromium has created its lock there.

    Chromium starts every download with a temporary file, also a download that it then refuses. Without write
    permission, no byte of a download reaches the disk.

    Raises: BrowserUnavailable.
    """
    try:
        _set_mode(settings.temporary, 0o500)
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
