"""The jail as the server sees it: how to start one, and the doors that lead into it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import structlog
from anyio.abc import Process

from browser_shell.browser.chromium.log_files import open_log_file
from browser_shell.browser.chromium.namespace_sockets import NamespaceSockets
from browser_shell.core.errors import BrowserUnavailable, JailUnavailable
from browser_shell.core.json_values import JsonObject
from browser_shell.process import orphans, spawn
from browser_shell.process.accounts import Account

log = structlog.get_logger()

# Of the system, not of a virtual environment: the account must be able to read it.
INTERPRETER = Path("/usr/bin/python3")
PROXY_PORT = 3128
_HELPER = Path(__file__).with_name("jail_child.py")
_START_SECONDS = 10.0
_CONNECT_SECONDS = 3.0
_LONGEST_MESSAGE = 65536
_HANDED_OVER = 3
# Where people keep what no web page should ever see. The browser needs none of it.
HIDDEN = ("/home", "/root", "/mnt", "/media", "/srv", "/etc/agent-browser")
_REMEDY = (
    "Chromium may only run in a jail without a network, and this machine does not allow making one ({reason}). "
    "In a container, add: --security-opt seccomp=seccomp.json (the shipped profile, deploy/image/seccomp.json). "
    "If that is set, or outside of one, allow unprivileged user namespaces on the machine: "
    "sysctl user.max_user_namespaces=15000, sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu). "
    "--unsafe-no-jail runs without this protection"
)
_CANNOT_MOUNT = (
    "this container may not mount, so Chromium would see the audit log and the key that signs it: the lock 'mounts' "
    "is missing. Where the host has AppArmor, add: --security-opt apparmor=unconfined, or name a profile that allows "
    "mount in user namespaces. Else add: --security-opt seccomp=seccomp.json (the shipped profile). "
    "BROWSER_SHELL_UNSAFE_MISSING_LOCKS=mounts does without; see docs/reference/image.md"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JailSettings:
    """What a jail holds."""

    marks: Path
    logs: Path
    home: Path
    chromium_policies: Path
    """Takes the place of /etc/chromium inside: the managed policy of this server, for its own browser only."""
    devtools_port: int
    hidden: tuple[str, ...] = HIDDEN
    must_hide: bool = False
    """Whether there is no jail where folders cannot be hidden. Set where Chromium shares the server's account."""
    account: Account | None


class Jail:
    """A running jail. Its process is the program itself."""

    def __init__(self, *, process: Process, proxy_listener: socket.socket, doors: NamespaceSockets, port: int) -> None:
        self.process = process
        self.proxy_listener = proxy_listener
        self._doors = doors
        self._port = port

    async def connect(self) -> socket.socket:
        """A new connection to the DevTools inside. Raises: BrowserUnavailable."""
        return await self._connect_to(self._port)

    async def connect_to_proxy(self) -> socket.socket:
        """A new connection to the egress proxy, as the browser would make it. Raises: BrowserUnavailable."""
        return await self._connect_to(PROXY_PORT)

    async def _connect_to(self, port: int) -> socket.socket:
        try:
            with anyio.fail_after(_CONNECT_SECONDS):
                return await self._doors.connect(port)
        except TimeoutError as cause:
            raise BrowserUnavailable("the jail does not answer") from cause
        except OSError as cause:
            raise BrowserUnavailable(f"nothing inside the jail answers: {os.strerror(cause.errno or 0)}") from cause


@asynccontextmanager
async def running_jail(settings: JailSettings, argv: tuple[str, ...], env: Mapping[str, str]) -> AsyncIterator[Jail]:
    """Runs a program in a jail of its own and ends both with the block.

    Raises: JailUnavailable with what to change, BrowserUnavailable.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    config: JsonObject = {
        "argv": list(argv),
        "env": dict(env),
        "proxy_port": PROXY_PORT,
        "hidden": list(settings.hidden),
        "must_hide": settings.must_hide,
        "overlays": {"/etc/chromium": str(settings.chromium_policies)},
    }
    with ours:
        with theirs, open_log_file(settings.logs / "chromium.log") as log:
            process = await spawn.start(
                spawn.Service(
                    name="the jail",
                    argv=(
                        *(str(INTERPRETER), "-I", "-S", "-c", _HELPER.read_text(encoding="utf-8")),
                        *(str(theirs.fileno()), json.dumps(config)),
                    ),
                    env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
                    cwd=settings.home,
                    account=settings.account,
                    output=log,
                    pass_fds=(theirs.fileno(),),
                )
            )
        orphans.save_identity(settings.marks / "chromium", process.pid)
        try:
            with ExitStack() as held:
                proxy_listener, listener, caller = await _sockets_inside(ours, held)
                doors = NamespaceSockets(listener=listener, caller=caller)
                try:
                    yield Jail(process=process, proxy_listener=proxy_listener, doors=doors, port=settings.devtools_port)
                finally:
                    await doors.end()
        finally:
            await spawn.stop(process, grace_seconds=2)
            (settings.marks / "chromium").unlink(missing_ok=True)


async def _sockets_inside(control: socket.socket, held: ExitStack) -> list[socket.socket]:
    """The three that the helper hands over: the proxy's listener, and those that doors are made of."""
    try:
        with anyio.fail_after(_START_SECONDS):
            await anyio.wait_readable(control)
        content, handles, _, _ = socket.recv_fds(control, _LONGEST_MESSAGE, _HANDED_OVER)
        sockets = [held.enter_context(socket.socket(fileno=handle)) for handle in handles]
        message = json.loads(content)
    except (OSError, ValueError) as cause:  # `TimeoutError` is an `OSError`; of a helper that ended there is no JSON.
        raise JailUnavailable(_REMEDY.format(reason="its helper did not start; see chromium.log")) from cause
    if message.get("ok") is not True:
        raise JailUnavailable(
            _CANNOT_MOUNT if message.get("arranged") is False else _REMEDY.format(reason=message.get("error"))
        )
    if len(sockets) != _HANDED_OVER:
        raise JailUnavailable(_REMEDY.format(reason="its sockets did not come through: too many files are open"))
    if message.get("arranged") is not True:
        # Only where it need not hide anything. The network is shut all the same.
        log.warning("jail_cannot_mount", missing="the managed policy and the hidden folders")
    for each in sockets:
        each.setblocking(False)
        each.set_inheritable(False)
    return sockets
