"""The jail as the server sees it: how to start one, and the two doors that lead into it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import structlog
from anyio.abc import Process

from browser_shell.core.errors import BrowserUnavailable, JailUnavailable
from browser_shell.core.json_values import JsonObject
from browser_shell.process import orphans, spawn
from browser_shell.process.account import Account

log = structlog.get_logger()

# Of the system, not of a virtual environment: the account must be able to read it.
INTERPRETER = Path("/usr/bin/python3")
PROXY_PORT = 3128
_HELPER = Path(__file__).with_name("jail_helper.py")
_START_SECONDS = 10.0
_CONNECT_SECONDS = 3.0
_LONGEST_MESSAGE = 65536
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
    "BROWSER_SHELL_UNSAFE_MISSING_LOCKS=mounts does without; see docs/image.md"
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
    """A running jail."""

    def __init__(self, *, process: Process, control: socket.socket, proxy_listener: socket.socket) -> None:
        self.process = process
        self.proxy_listener = proxy_listener
        self._control = control
        self._turn = anyio.Lock()
        """The helper answers one question at a time."""
        self._asked = 0

    async def connect(self) -> socket.socket:
        """A new connection to the DevTools inside. Raises: BrowserUnavailable."""
        return await self._open_door(b"devtools")

    async def connect_to_proxy(self) -> socket.socket:
        """A new connection to the egress proxy, as the browser would make it. Raises: BrowserUnavailable."""
        return await self._open_door(b"proxy")

    async def _open_door(self, door: bytes) -> socket.socket:
        async with self._turn:
            try:
                with anyio.fail_after(_CONNECT_SECONDS, shield=True):
                    message, handles = await self._ask(door)
            except (OSError, TimeoutError) as cause:
                raise BrowserUnavailable("the jail does not answer") from cause
        if not handles:
            raise BrowserUnavailable(f"nothing inside the jail answers: {message.get('error')}")
        inner = socket.socket(fileno=handles[0])
        inner.setblocking(False)
        return inner

    async def _ask(self, door: bytes) -> tuple[JsonObject, list[int]]:
        self._asked += 1
        await anyio.wait_writable(self._control)
        self._control.send(b"%s %d" % (door, self._asked))
        while True:
            message, handles = await _receive(self._control)
            if message.get("number") == self._asked:
                return message, handles
            for late in handles:  # To a question that nobody waits for any more, perhaps about the other door.
                os.close(late)


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
        "devtools_port": settings.devtools_port,
        "hidden": list(settings.hidden),
        "must_hide": settings.must_hide,
        "overlays": {"/etc/chromium": str(settings.chromium_policies)},
    }
    with ours:
        with theirs, (settings.logs / "chromium.log").open("wb") as log:
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
        orphans.save_mark(settings.marks / "chromium", process.pid)
        try:
            with await _proxy_listener(ours) as listener:
                yield Jail(process=process, control=ours, proxy_listener=listener)
        finally:
            await spawn.stop(process, grace_seconds=2)
            (settings.marks / "chromium").unlink(missing_ok=True)


async def _proxy_listener(control: socket.socket) -> socket.socket:
    try:
        with anyio.fail_after(_START_SECONDS):
            message, handles = await _receive(control)
    except (OSError, TimeoutError) as cause:
        raise JailUnavailable(_REMEDY.format(reason="its helper did not start; see chromium.log")) from cause
    if not handles and message.get("arranged") is False:
        raise JailUnavailable(_CANNOT_MOUNT)
    if not handles:
        raise JailUnavailable(_REMEDY.format(reason=message.get("error")))
    if message.get("arranged") is not True:
        # Only where it need not hide anything. The network is shut all the same.
        log.warning("jail_cannot_mount", missing="the managed policy and the hidden folders")
    listener = socket.socket(fileno=handles[0])
    listener.setblocking(False)
    return listener


async def _receive(control: socket.socket) -> tuple[JsonObject, list[int]]:
    await anyio.wait_readable(control)
    content, handles, _, _ = socket.recv_fds(control, _LONGEST_MESSAGE, 1)
    if not content:
        raise ConnectionResetError("the helper has ended")
    message = json.loads(content)
    return (message if isinstance(message, dict) else {}), handles
