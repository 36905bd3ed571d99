"""The virtual display: Xvnc, which is X server and VNC server in one, and a tiny window manager."""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

from browser_shell.browser.chromium.log_files import open_log_file
from browser_shell.core.errors import BrowserUnavailable
from browser_shell.process import orphans, spawn
from browser_shell.process.accounts import Account

XVNC = Path("/usr/bin/Xtigervnc")
WINDOW_MANAGER = Path("/usr/bin/matchbox-window-manager")
VNC_SOCKET = "vnc.sock"
"""Its name in the display's directory."""
_START_SECONDS = 10.0
_X_SOCKETS = Path("/tmp/.X11-unix")  # noqa: S108  the place is fixed by the X protocol
_FAMILY_WILD = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplaySettings:
    """Where the display keeps its files, and how large it is."""

    directory: Path
    """Private to the account; holds the X cookie and the VNC socket."""
    window_manager_home: Path
    """Empty and unwritable, so that the window manager finds no configuration there."""
    marks: Path
    logs: Path
    width: int
    height: int
    account: Account | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDisplay:
    """A display that accepts clients."""

    process: Process
    env: dict[str, str]
    """What an X client needs to connect."""


@asynccontextmanager
async def running_display(settings: DisplaySettings) -> AsyncIterator[RunningDisplay]:
    """Starts Xvnc and stops it at the end of the block.

    Raises: BrowserUnavailable.
    """
    cookie = settings.directory / "Xauthority"
    _write_cookie(cookie, settings.account)
    make_socket_directory()
    with open_log_file(settings.logs / "xvnc.log") as log:
        read_end, write_end = os.pipe()
        process = await spawn.start(
            spawn.Service(
                name="Xvnc",
                argv=_xvnc_argv(settings, cookie, write_end),
                env={"HOME": str(settings.directory), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
                cwd=settings.directory,
                account=settings.account,
                output=log,
                pass_fds=(write_end,),
            )
        )
    os.close(write_end)
    orphans.save_identity(settings.marks / "xvnc", process.pid)
    number = ""
    try:
        number = await _display_number(read_end)
        yield RunningDisplay(process=process, env={"DISPLAY": f":{number}", "XAUTHORITY": str(cookie)})
    finally:
        await spawn.stop(process, grace_seconds=1)
        os.close(read_end)
        (settings.marks / "xvnc").unlink(missing_ok=True)
        _remove_stale_lock(number)


def _xvnc_argv(settings: DisplaySettings, cookie: Path, number_pipe: int) -> tuple[str, ...]:
    return (
        *(str(XVNC), "-displayfd", str(number_pipe), "-auth", str(cookie)),
        *("-geometry", f"{settings.width}x{settings.height}", "-depth", "24", "-noreset", "-extension", "GLX"),
        # X and VNC on unix sockets only: the box opens no port for its picture.
        *("-nolisten", "tcp", "-rfbport", "-1", "-rfbunixpath", str(settings.directory / VNC_SOCKET)),
        *("-rfbunixmode", "0600", "-SecurityTypes", "None", "-AlwaysShared"),
        # Only the gateway can reach the socket. Its viewers are one client to Xvnc, which would shut them all out after
        # five that were slow to say hello.
        *("-BlacklistThreshold", "1000000", "-BlacklistTimeout", "0"),
        # One clipboard would join every session and every viewer, and the size of the display is the operator's.
        *("-AcceptCutText=0", "-SendCutText=0", "-AcceptSetDesktopSize=0"),
    )


def _write_cookie(path: Path, account: Account | None) -> None:
    """Without a cookie every local user could read the screen and type into it."""
    name, value = b"MIT-MAGIC-COOKIE-1", secrets.token_bytes(16)
    entry = struct.pack(">HHH", _FAMILY_WILD, 0, 0)
    entry += struct.pack(">H", len(name)) + name + struct.pack(">H", len(value)) + value
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(entry)
    if account is not None:
        os.chown(path, account.uid, account.gid)


def make_socket_directory() -> None:
    """X servers of every account share it."""
    if not _X_SOCKETS.exists():
        _X_SOCKETS.mkdir(mode=0o777, exist_ok=True)
        _X_SOCKETS.chmod(0o1777)


async def _display_number(read_end: int) -> str:
    """X writes the number and the newline in two steps and dies if the pipe closes between them."""
    text = b""
    try:
        with anyio.fail_after(_START_SECONDS):
            while not text.endswith(b"\n"):
                await anyio.wait_readable(read_end)
                part = os.read(read_end, 64)
                if not part:
                    raise BrowserUnavailable("Xvnc ended before its display was ready; see xvnc.log")
                text += part
    except TimeoutError as late:
        raise BrowserUnavailable("Xvnc did not become ready; see xvnc.log") from late
    return text.decode("ascii").strip()


def _remove_stale_lock(number: str) -> None:
    """A killed X server leaves its lock and socket; both are useless once it is gone."""
    if not number:
        return
    for leftover in (Path(f"/tmp/.X{number}-lock"), _X_SOCKETS / f"X{number}"):  # noqa: S108  fixed by X
        try:
            leftover.unlink(missing_ok=True)
        except PermissionError:
            continue


async def keep_window_manager(settings: DisplaySettings, display: RunningDisplay) -> None:
    """Runs the window manager for as long as the display lives; without one, a popup could not be closed by mouse."""
    while True:
        with open_log_file(settings.logs / "window-manager.log") as log:
            process = await spawn.start(
                spawn.Service(
                    name="the window manager",
                    # Debian's /etc/matchbox/kbdconfig binds Ctrl+Alt+X to xterm, which would run outside the jail.
                    # With /dev/null there are no shortcuts. The command line takes precedence over the X resource
                    # `matchbox.kbdconfig`, which any X client can set.
                    argv=(str(WINDOW_MANAGER), "-use_titlebar", "yes", "-kbdconfig", "/dev/null"),
                    env={
                        **display.env,
                        "HOME": str(settings.window_manager_home),
                        "LC_ALL": "C.UTF-8",
                        "PATH": "/nonexistent",
                    },
                    cwd=settings.window_manager_home,
                    account=settings.account,
                    output=log,
                )
            )
        try:
            await process.wait()
        finally:
            await spawn.stop(process, grace_seconds=0.5)
        await anyio.sleep(1)
