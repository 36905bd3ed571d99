"""The virtual display: Xvnc, which is an X server and a VNC server in one, and a window manager."""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout
from browser_shell.browser.chromium.services import open_new_file, running_service
from browser_shell.core.errors import BrowserUnavailable
from browser_shell.process.accounts import Account

XVNC = Path("/usr/bin/Xtigervnc")
WINDOW_MANAGER = Path("/usr/bin/matchbox-window-manager")
VNC_SOCKET = "vnc.sock"
"""File name in the directory of the display."""
_START_SECONDS = 10.0
_WINDOW_MANAGER_PAUSE_SECONDS = 1.0
_X_SOCKETS = Path("/tmp/.X11-unix")  # noqa: S108  fixed by the X protocol
RFB_VERSION = b"RFB 003.008\n"
_NO_SECURITY, _SHARED = b"\x01", b"\x01"
PARKED_POINTER = struct.pack(">BBHH", 5, 0, 2, 2)
"""RFB message that releases all buttons and moves the pointer to the top left corner, which no page covers.

When windows of other sessions open and close, the X server sends the position of the pointer to the window below it. In
a page, this would end a drag and close a menu that an agent opened."""
_FAMILY_WILD = 0xFFFF
"""From Xauth.h: the cookie is valid for every address of the display."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDisplay:
    """A display that accepts clients."""

    process: Process
    env: dict[str, str]
    """The environment variables with which an X client connects."""


@asynccontextmanager
async def running_display(layout: RuntimeLayout, *, width: int, height: int) -> AsyncIterator[RunningDisplay]:
    """Start Xvnc, and stop it at the end of the block.

    Raises: BrowserUnavailable.
    """
    cookie = layout.display / "Xauthority"
    _write_cookie(cookie, layout.account)
    make_socket_directory()
    number = ""
    read_end, write_end = os.pipe()
    try:
        # Xvnc writes its display number and then a newline. It dies when the read end is closed in between.
        with os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb") as writer:
            async with running_service(
                "xvnc",
                argv=_xvnc_argv(layout.display / VNC_SOCKET, cookie, write_end, size=f"{width}x{height}"),
                env={"HOME": str(layout.display), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
                cwd=layout.display,
                layout=layout,
                grace_seconds=1,
                pass_fds=(write_end,),
            ) as process:
                writer.close()
                number = await _read_display_number(read_end)
                await _park_pointer(layout.display / VNC_SOCKET)
                yield RunningDisplay(process=process, env={"DISPLAY": f":{number}", "XAUTHORITY": str(cookie)})
    finally:
        if number:
            _remove_lock_and_socket(number)


def _xvnc_argv(vnc_socket: Path, cookie: Path, number_pipe: int, *, size: str) -> tuple[str, ...]:
    return (
        *(str(XVNC), "-displayfd", str(number_pipe), "-auth", str(cookie)),
        *("-geometry", size, "-depth", "24", "-noreset", "-extension", "GLX"),
        # X and VNC listen on Unix sockets only.
        *("-nolisten", "tcp", "-rfbport", "-1", "-rfbunixpath", str(vnc_socket)),
        *("-rfbunixmode", "0600", "-SecurityTypes", "None", "-AlwaysShared"),
        # By default, Xvnc blocks a client address after five connections without authentication. All viewers share one
        # address, that of the gateway.
        *("-BlacklistThreshold", "1000000", "-BlacklistTimeout", "0"),
        # A clipboard would be shared by all sessions and viewers. Viewers may not resize the display.
        *("-AcceptCutText=0", "-SendCutText=0", "-AcceptSetDesktopSize=0"),
    )


def _write_cookie(path: Path, account: Account | None) -> None:
    """Write an X authority file. Without it, every local user could read the screen and send input."""
    name, value = b"MIT-MAGIC-COOKIE-1", secrets.token_bytes(16)
    entry = struct.pack(">HHH", _FAMILY_WILD, 0, 0)
    entry += struct.pack(">H", len(name)) + name + struct.pack(">H", len(value)) + value
    with open_new_file(path) as file:
        file.write(entry)
        if account is not None:
            os.fchown(file.fileno(), account.uid, account.gid)


def make_socket_directory() -> None:
    """Create the directory that X servers of all accounts share."""
    if not _X_SOCKETS.exists():
        _X_SOCKETS.mkdir(mode=0o777, exist_ok=True)
        _X_SOCKETS.chmod(0o1777)


async def _read_display_number(pipe: int) -> str:
    """Read up to the newline. Raises: BrowserUnavailable."""
    text = b""
    try:
        with anyio.fail_after(_START_SECONDS):
            while not text.endswith(b"\n"):
                await anyio.wait_readable(pipe)
                part = os.read(pipe, 64)
                if not part:
                    raise BrowserUnavailable("Xvnc ended before its display was ready; see xvnc.log")
                text += part
    except TimeoutError as late:
        raise BrowserUnavailable("Xvnc did not become ready; see xvnc.log") from late
    return text.decode("ascii").strip()


async def _park_pointer(vnc_socket: Path) -> None:
    """Move the pointer of the display away from all pages, as a viewer of the display (RFC 6143 §7).

    Raises: BrowserUnavailable.
    """
    try:
        with anyio.fail_after(_START_SECONDS):
            async with await anyio.connect_unix(vnc_socket) as display:
                stream = BufferedByteReceiveStream(display)
                await stream.receive_exactly(len(RFB_VERSION))
                await display.send(RFB_VERSION)
                await stream.receive_exactly((await stream.receive_exactly(1))[0])  # Security types.
                await display.send(_NO_SECURITY)
                await stream.receive_exactly(4)  # Result of the security handshake.
                await display.send(_SHARED)
                size_format_and_name_length = await stream.receive_exactly(24)
                await stream.receive_exactly(struct.unpack(">20xI", size_format_and_name_length)[0])
                await display.send(PARKED_POINTER)
    except (OSError, TimeoutError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError) as failure:
        raise BrowserUnavailable("the pointer of the display could not be moved; see xvnc.log") from failure


def _remove_lock_and_socket(number: str) -> None:
    """Remove the files that a killed X server leaves behind."""
    for path in (Path(f"/tmp/.X{number}-lock"), _X_SOCKETS / f"X{number}"):  # noqa: S108  fixed by X
        with suppress(FileNotFoundError, PermissionError):
            path.unlink()


async def keep_window_manager(layout: RuntimeLayout, display: RunningDisplay) -> None:
    """Run the window manager, and start it again when it ends. Its title bars let a viewer close popups by mouse.

    Raises: BrowserUnavailable.
    """
    while True:
        async with running_service(
            "window-manager",
            # Debian's /etc/matchbox/kbdconfig binds Ctrl+Alt+X to xterm, which would run outside the jail. With
            # /dev/null there are no shortcuts. The command line takes precedence over the X resource
            # `matchbox.kbdconfig`, which any X client can set.
            argv=(str(WINDOW_MANAGER), "-use_titlebar", "yes", "-kbdconfig", "/dev/null"),
            env={**display.env, "HOME": str(layout.driver_home), "LC_ALL": "C.UTF-8", "PATH": "/nonexistent"},
            cwd=layout.driver_home,
            layout=layout,
            grace_seconds=0.5,
        ) as process:
            await process.wait()
        await anyio.sleep(_WINDOW_MANAGER_PAUSE_SECONDS)
