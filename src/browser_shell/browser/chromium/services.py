"""Runs the long-lived programs of the browser: Xvnc, the window manager and Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

import structlog
from anyio.abc import Process

from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout
from browser_shell.core.errors import BrowserUnavailable
from browser_shell.process import orphans, spawn
from browser_shell.process.files import create_file

log = structlog.get_logger()


@asynccontextmanager
async def running_service(
    name: str,
    *,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    cwd: Path,
    layout: RuntimeLayout,
    grace_seconds: float,
    pass_fds: tuple[int, ...] = (),
) -> AsyncIterator[Process]:
    """Start a program, and stop it at the end of the block.

    Its output goes to `logs/NAME.log`. Its identity is saved in `identities/NAME`. If this server is killed, the next
    server ends the program by that identity.

    Raises: BrowserUnavailable, SandboxUnavailable.
    """
    with open_new_file(layout.logs / f"{name}.log") as output:
        process = await spawn.start(
            spawn.Service(
                name=name, argv=argv, env=env, cwd=cwd, account=layout.account, output=output, pass_fds=pass_fds
            )
        )
    identity = layout.identities / name
    try:
        try:
            orphans.save_identity(identity, process.pid)
        except OSError as cause:
            raise _file_not_created(identity, cause) from cause
        yield process
    finally:
        await spawn.stop(process, grace_seconds=grace_seconds)
        with suppress(OSError):
            identity.unlink()


def open_new_file(path: Path) -> IO[bytes]:
    """Create a file in place of whatever has this name.

    Chromium runs under the account that owns the directory. A compromised browser process can put a link or a FIFO
    there, so an existing entry is never opened.

    Raises: BrowserUnavailable.
    """
    try:
        return create_file(path)
    except OSError as cause:
        raise _file_not_created(path, cause) from cause


def _file_not_created(path: Path, cause: OSError) -> BrowserUnavailable:
    log.warning("service_file_failed", path=str(path), reason=cause.strerror)
    return BrowserUnavailable(f"{path.name} cannot be created ({cause.strerror}); the server's log has its path")
