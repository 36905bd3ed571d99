"""Run Chromium in a jail.

The jail consists of a network namespace whose only interface is loopback, and of a mount namespace in which directories
with personal data are empty. The server starts `jail_child.py`, which enters the namespaces, creates three sockets,
passes them to the server and then executes Chromium. No helper process stays in the jail. The sockets are the only
connection between the network of the jail and the server:

- a listener, on which the server's egress proxy accepts the connections of Chromium;
- a listener and a client socket, with which `NamespaceSockets` connects the server to Chromium's DevTools port.
"""

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

from browser_shell.browser.chromium.namespace_sockets import NamespaceSockets
from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout
from browser_shell.browser.chromium.services import running_service
from browser_shell.core.errors import BrowserUnavailable, JailUnavailable
from browser_shell.core.json_values import JsonObject

log = structlog.get_logger()

INTERPRETER = Path("/usr/bin/python3")
"""The interpreter of the system. Chromium's account may be unable to read a virtual environment."""
PROXY_PORT = 3128
"""The port of the egress proxy inside the jail."""
HIDDEN_DIRECTORIES = ("/home", "/root", "/mnt", "/media", "/srv", "/etc/agent-browser")
"""Directories with personal data or with settings of the driver. Chromium needs none of them."""
_CHILD = Path(__file__).with_name("jail_child.py")
_START_SECONDS = 10.0
_CONNECT_SECONDS = 3.0
_STOP_SECONDS = 2.0
_MAX_MESSAGE_BYTES = 65536
_SOCKET_COUNT = 3
_JAIL_ADVICE = (
    "Chromium may only run in a jail without a network, and this machine does not allow the creation of one "
    "({reason}). "
    "In a container, add: --security-opt seccomp=seccomp.json (the shipped profile, deploy/image/seccomp.json). "
    "If that is set already, or outside of a container, allow unprivileged user namespaces on the machine: "
    "sysctl user.max_user_namespaces=15000, sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu). "
    "--unsafe-no-jail runs without this protection"
)
_MOUNT_ADVICE = (
    "this container may not mount, so Chromium would see the audit log and the key that signs it: the lock 'mounts' "
    "is missing. Where the host has AppArmor, add: --security-opt apparmor=unconfined, or name a profile that allows "
    "mount in user namespaces. Else add: --security-opt seccomp=seccomp.json (the shipped profile). "
    "BROWSER_SHELL_UNSAFE_MISSING_LOCKS=mounts starts without this lock; see docs/reference/image.md"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JailSettings:
    """Settings of a jail."""

    layout: RuntimeLayout
    """Chromium cannot rename `layout.root`. Otherwise it could replace a parent of hidden directories."""
    hidden_directories: tuple[str, ...] = HIDDEN_DIRECTORIES
    """Directories that Chromium finds empty. Missing ones are ignored."""
    must_hide: bool = False
    """Refuse to start where directories cannot be hidden. True where Chromium shares the server's account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jail:
    """A running jail. `process` is Chromium itself, because the jail's child has executed it."""

    process: Process
    proxy_listener: socket.socket
    sockets: NamespaceSockets

    async def connect(self, port: int) -> socket.socket:
        """Open a connection to a port inside: that of DevTools, or PROXY_PORT. Raises: BrowserUnavailable."""
        try:
            with anyio.fail_after(_CONNECT_SECONDS):
                return await self.sockets.connect(port)
        except TimeoutError as cause:
            raise BrowserUnavailable("the jail does not answer") from cause
        except OSError as cause:
            raise BrowserUnavailable(f"cannot connect inside the jail: {os.strerror(cause.errno or 0)}") from cause


@asynccontextmanager
async def running_jail(settings: JailSettings, argv: tuple[str, ...], env: Mapping[str, str]) -> AsyncIterator[Jail]:
    """Run a program in a new jail, and end it at the end of the block.

    Raises: JailUnavailable with advice for the operator, BrowserUnavailable.
    """
    control, child_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.setblocking(False)
    with control, child_control:
        async with running_service(
            "chromium",
            argv=_child_argv(settings, child_control.fileno(), argv, env),
            env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
            cwd=settings.layout.chromium_home,
            layout=settings.layout,
            grace_seconds=_STOP_SECONDS,
            pass_fds=(child_control.fileno(),),
        ) as process:
            # The child has its own copy. When it dies, `control` becomes readable only if there is no other copy.
            child_control.close()
            with ExitStack() as stack:
                proxy_listener, listener, client = await _receive_sockets(control, stack)
                sockets = NamespaceSockets(listener=listener, client=client)
                try:
                    yield Jail(process=process, proxy_listener=proxy_listener, sockets=sockets)
                finally:
                    await sockets.aclose()


def _child_argv(settings: JailSettings, control: int, argv: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
    """Build the command line of `jail_child.py`, whose docstring describes the arguments."""
    config: JsonObject = {
        "argv": list(argv),
        "env": dict(env),
        "proxy_port": PROXY_PORT,
        "hidden_directories": list(settings.hidden_directories),
        "pinned_directory": str(settings.layout.root),
        "must_hide": settings.must_hide,
        "chromium_policies": str(settings.layout.chromium_policies),
    }
    program = _CHILD.read_text(encoding="utf-8")
    return (str(INTERPRETER), "-I", "-S", "-c", program, str(control), json.dumps(config))


async def _receive_sockets(control: socket.socket, stack: ExitStack) -> list[socket.socket]:
    """Wait for the child's message and return the three sockets that come with it. The stack closes them.

    Raises: JailUnavailable.
    """
    try:
        with anyio.fail_after(_START_SECONDS):
            await anyio.wait_readable(control)
        content, descriptors, _, _ = socket.recv_fds(control, _MAX_MESSAGE_BYTES, _SOCKET_COUNT)
        sockets = [stack.enter_context(socket.socket(fileno=descriptor)) for descriptor in descriptors]
        message = json.loads(content)
    except (OSError, ValueError) as cause:  # TimeoutError is an OSError. A child that died leaves `content` empty.
        raise JailUnavailable(
            _JAIL_ADVICE.format(reason="its child process did not start; see chromium.log")
        ) from cause
    mounted = message.get("mounted")
    if message.get("ok") is not True:
        raise JailUnavailable(_MOUNT_ADVICE if mounted is False else _JAIL_ADVICE.format(reason=message.get("error")))
    if len(sockets) != _SOCKET_COUNT:
        # The kernel discards descriptors that exceed the receiver's limit of open files.
        raise JailUnavailable("the sockets of the jail were not received: too many files are open (ulimit -n)")
    if mounted is not True:
        # The child reports this as an error when `must_hide` is set. The network is restricted in any case.
        log.warning("jail_cannot_mount", missing="the managed policy and the hidden directories")
    for each in sockets:
        each.setblocking(False)
        each.set_inheritable(False)  # Received descriptors are inheritable, unlike those that Python opens.
    return sockets
