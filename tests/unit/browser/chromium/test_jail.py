"""The view of a program in the jail. The program is a small script; tests/security/test_jail.py uses Chromium."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream

from browser_shell.browser.chromium import jail as jail_module
from browser_shell.browser.chromium.jail import PROXY_PORT, Jail
from browser_shell.core.errors import BrowserUnavailable, JailUnavailable
from browser_shell.process.accounts import make_private_directory
from support.call_filters import output_behind_filter
from support.egress import read_all, read_until
from support.jails import in_same_network, jail_settings, output_in_jail, running_script
from support.processes import alive, open_files, status

WAIT = "import time; time.sleep(60)"
SERVE_INSIDE = """
import socket
with socket.create_server(("127.0.0.1", 9222)) as server:
    while True:
        client, _ = server.accept(); client.sendall(b"inside"); client.close()
"""
MOUNT = {"x86_64": 165, "aarch64": 40}
"""System call numbers."""
# Starts a jail whose program writes a file. Prints the error message of the jail, or null.
START_JAIL = """
import anyio, json
from pathlib import Path
from browser_shell.core.errors import JailUnavailable
from support.jails import jail_settings, running_script
async def start():
    settings = jail_settings(Path({directory!r}), must_hide={must_hide})
    try:
        async with running_script(settings, "open({written!r}, 'w')") as jail:
            await jail.process.wait()
    except JailUnavailable as error:
        return error.public_message
print(json.dumps(anyio.run(start)))
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the unprivileged account can enter, unlike the one of pytest."""
    path = Path(tempfile.mkdtemp(prefix="bsh-jail-", dir="/tmp"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.promise("jail:no-way-out")
async def test_the_network_has_no_interface_but_loopback_and_no_route(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.setblocking(False)
        port = canary.getsockname()[1]
        script = f"""
import socket
def errno_of(family, address):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(3); s.connect(address)
        return 0
    except OSError as error:
        return error.errno
print(json.dumps({{
    "interfaces": [name for _, name in socket.if_nameindex()],
    "routes": open("/proc/net/route").read().splitlines()[1:],
    "canary": errno_of(socket.AF_INET, ("127.0.0.1", {port})),
    "documentation": errno_of(socket.AF_INET, ("192.0.2.1", 80)),
    "documentation6": errno_of(socket.AF_INET6, ("2001:db8::1", 80)),
}}))"""
        output = await output_in_jail(jail_settings(directory), script)
        with pytest.raises(BlockingIOError):
            canary.accept()
    assert output == {
        "interfaces": ["lo"],
        "routes": [],
        "canary": errno.ECONNREFUSED,
        "documentation": errno.ENETUNREACH,
        "documentation6": errno.ENETUNREACH,
    }


@pytest.mark.promise("jail:no-privileges")
async def test_the_program_is_alone_in_the_jail_and_has_no_capabilities(directory: Path) -> None:
    async with running_script(jail_settings(directory), WAIT) as jail:
        pid = jail.process.pid
        assert in_same_network(pid) == [pid]
        assert {status(pid, name) for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")} == {"0" * 16}
        assert status(pid, "NoNewPrivs") == "1"
        assert "0" not in status(pid, "Uid").split()


async def test_the_program_inherits_no_descriptor_that_the_child_opened(directory: Path) -> None:
    script = """
import os
print(json.dumps([os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")
    if os.path.exists(f"/proc/self/fd/{number}")]))"""
    targets = await output_in_jail(jail_settings(directory), script)
    assert sorted(set(targets)) == ["/dev/null", str(directory / "log" / "chromium.log")]


async def test_the_program_cannot_enter_a_namespace_open_raw_sockets_or_mount(directory: Path) -> None:
    script = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def enter_network_of(pid):
    try:
        with open(f"/proc/{pid}/ns/net") as namespace:
            return libc.setns(namespace.fileno(), 0)
    except OSError: return -1
def open_raw_socket():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW); return 0
    except OSError: return -1
print(json.dumps({"init": enter_network_of(1), "server": enter_network_of(%d), "raw": open_raw_socket(),
    "mount": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)}))"""
    output = await output_in_jail(jail_settings(directory), script % os.getpid())
    assert output == {"init": -1, "server": -1, "raw": -1, "mount": -1}


@pytest.mark.promise("jail:files-hidden")
async def test_directories_are_hidden_and_the_policy_is_mounted_read_only(directory: Path) -> None:
    script = """
import os
def names_in(path):
    try: return sorted(os.listdir(path))
    except OSError: return "refused"
def can_write(path):
    try: open(path, "w").close(); return True
    except OSError: return False
print(json.dumps({"home": names_in("/home"), "root": names_in("/root"), "srv": names_in("/srv"),
    "policy": names_in("/etc/chromium"),
    "writable": [path for path in ("/etc/chromium/x", "/home/x", "/root/x") if can_write(path)]}))"""
    output = await output_in_jail(jail_settings(directory), script)
    assert output == {"home": [], "root": [], "srv": [], "policy": ["here.json"], "writable": []}
    assert not Path("/etc/chromium/here.json").exists()


@pytest.mark.parametrize("prefix", ["{directory}", ".."])
async def test_hidden_directories_cannot_be_reached_by_a_rename_or_the_working_directory(
    directory: Path, prefix: str
) -> None:
    settings = jail_settings(directory, hidden_directories=(str(directory / "sockets"),))
    make_private_directory(directory, owner=settings.layout.account)
    make_private_directory(directory / "sockets", owner=settings.layout.account)
    (directory / "sockets" / "daemon.sock").touch()
    script = f"""
import os
path = {prefix.format(directory=directory)!r}
def error_of(function, *arguments):
    try: function(*arguments); return 0
    except OSError as error: return error.errno
print(json.dumps({{"names": os.listdir(path + "/sockets"),
    "rename": error_of(os.rename, path + "/sockets", path + "/moved"),
    "rename parent": error_of(os.rename, {str(directory)!r}, {str(directory) + ".moved"!r})}}))"""
    output = await output_in_jail(settings, script)
    assert output == {"names": [], "rename": errno.EBUSY, "rename parent": errno.EBUSY}


def start_without_mounting(directory: Path, *, must_hide: bool) -> tuple[Any, bool]:
    """Return the jail's error message, and whether the program ran."""
    written = directory / "home" / "written"
    script = START_JAIL.format(directory=str(directory), written=str(written), must_hide=must_hide)
    return output_behind_filter([MOUNT[platform.machine()]], script, error=errno.EPERM), written.exists()


@pytest.mark.promise("container:browser-sees-no-state")
def test_a_jail_that_must_hide_directories_does_not_start_where_mounting_is_forbidden(directory: Path) -> None:
    message, program_ran = start_without_mounting(directory, must_hide=True)
    assert message is not None
    assert "BROWSER_SHELL_UNSAFE_MISSING_LOCKS=mounts" in message
    assert "--security-opt apparmor=unconfined" in message
    assert not program_ran


def test_another_jail_starts_where_mounting_is_forbidden(directory: Path) -> None:
    assert start_without_mounting(directory, must_hide=False) == (None, True)


async def test_the_proxy_listens_on_every_loopback_address_inside(directory: Path) -> None:
    script = f"""
import socket
for address in ("127.0.0.1", "127.1.0.7", "127.250.3.4"):
    with socket.create_connection((address, {PROXY_PORT}), 5) as s:
        s.recv(1)
"""
    async with running_script(jail_settings(directory), script) as jail:
        addresses = []
        for _ in range(3):
            with anyio.fail_after(5):
                await anyio.wait_readable(jail.proxy_listener)
            client, _peer = jail.proxy_listener.accept()
            with client:
                addresses.append(client.getsockname()[0])
    assert addresses == ["127.0.0.1", "127.1.0.7", "127.250.3.4"]


async def connect(jail: Jail) -> SocketStream:
    """Wait until the program listens, and connect to it."""
    with anyio.fail_after(5):
        while True:
            try:
                return await SocketStream.from_socket(await jail.connect(9222))
            except BrowserUnavailable:
                await anyio.sleep(0.02)


async def test_the_server_connects_to_the_program_and_the_proxy_is_not_reachable_outside(directory: Path) -> None:
    async with running_script(jail_settings(directory), SERVE_INSIDE) as jail:
        async with await connect(jail) as stream:
            assert await read_all(stream) == b"inside"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", PROXY_PORT), 1)


async def test_many_connections_can_be_opened_at_the_same_time(directory: Path) -> None:
    async with running_script(jail_settings(directory), SERVE_INSIDE) as jail:
        async with await connect(jail) as stream:
            assert await read_all(stream) == b"inside"
        received = []

        async def connect_repeatedly() -> None:
            for _ in range(20):
                async with await SocketStream.from_socket(await jail.connect(9222)) as stream:
                    received.append(await read_all(stream))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(connect_repeatedly)
        assert received == [b"inside"] * 200


async def test_a_cancelled_attempt_leaves_no_descriptor_and_does_not_disturb_later_ones(directory: Path) -> None:
    async with running_script(jail_settings(directory), SERVE_INSIDE) as jail:
        await (await connect(jail)).aclose()
        files = open_files()

        async def attempt() -> None:
            (await jail.connect(9222)).close()

        for steps in range(12):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(attempt)
                    for _ in range(steps):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
        assert open_files() == files
        for _ in range(3):
            async with await SocketStream.from_socket(await jail.connect(9222)) as stream:
                assert await read_all(stream) == b"inside"


FIND_LISTENER = """
import socket
rows = [line.split() for line in open("/proc/net/tcp").read().splitlines()[1:]]
listening = [row[1].split(":") for row in rows if row[3] == "0A"]
((address, port),) = [(address, port) for address, port in listening if int(port, 16) != 3128]
listener = (socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16))
"""


async def test_foreign_connections_to_the_servers_listener_do_not_disturb_the_server(directory: Path) -> None:
    script = f"""{FIND_LISTENER}
clients = [socket.socket() for _ in range(40)]
for client in clients:
    client.setblocking(False)
    try: client.connect(listener)
    except BlockingIOError: pass
{SERVE_INSIDE}"""
    async with running_script(jail_settings(directory), script) as jail:
        for _ in range(3):
            async with await connect(jail) as stream:
                assert await read_all(stream) == b"inside"


async def test_the_servers_listener_occupies_no_port_of_127_0_0_1(directory: Path) -> None:
    script = f"{FIND_LISTENER}\nsocket.create_server(('127.0.0.1', listener[1]))\nprint(json.dumps(listener))"
    assert (await output_in_jail(jail_settings(directory), script))[0] == "127.0.0.2"


async def test_a_connection_to_a_port_without_a_listener_is_reported(directory: Path) -> None:
    async with running_script(jail_settings(directory), WAIT) as jail:
        with pytest.raises(BrowserUnavailable):
            await jail.connect(9222)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_after_the_program_is_killed_the_jail_accepts_no_connections(
    directory: Path, number: signal.Signals
) -> None:
    async with running_script(jail_settings(directory), WAIT) as jail:
        os.kill(jail.process.pid, number)
        with anyio.fail_after(5):
            assert await jail.process.wait() == -number
        with pytest.raises(BrowserUnavailable):
            await jail.connect(9222)


async def test_the_end_of_the_block_ends_the_program(directory: Path) -> None:
    settings = jail_settings(directory)
    async with running_script(settings, WAIT) as jail:
        assert (settings.layout.identities / "chromium").exists()
    assert not alive(jail.process.pid)
    assert not (settings.layout.identities / "chromium").exists()


async def test_the_jail_has_the_exit_code_of_the_program(directory: Path) -> None:
    async with running_script(jail_settings(directory), "raise SystemExit(7)") as jail:
        with anyio.fail_after(5):
            assert await jail.process.wait() == 7


async def test_a_missing_program_is_named_in_the_log(directory: Path) -> None:
    settings = jail_settings(directory)
    async with jail_module.running_jail(settings, ("/nonexistent/chromium",), {}) as jail:
        with anyio.fail_after(5):
            assert await jail.process.wait() == 127
    assert (settings.layout.logs / "chromium.log").read_text() == "/nonexistent/chromium: No such file or directory\n"


@pytest.mark.promise("jail:no-jail-no-start")
async def test_no_program_runs_when_a_mount_fails(directory: Path) -> None:
    settings = jail_settings(directory)
    shutil.rmtree(settings.layout.chromium_policies)
    written = directory / "home" / "written"
    with pytest.raises(JailUnavailable) as error:
        async with running_script(settings, f"open({str(written)!r}, 'w')"):
            pytest.fail("the jail has started")
    assert "mount /etc/chromium" in error.value.public_message
    assert "sysctl kernel.unprivileged_userns_clone=1" in error.value.public_message
    assert not written.exists()
    assert not (settings.layout.identities / "chromium").exists()


async def test_a_child_that_ends_at_once_is_reported(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jail_module, "INTERPRETER", Path("/bin/false"))
    with pytest.raises(JailUnavailable), anyio.fail_after(5):
        async with jail_module.running_jail(jail_settings(directory), ("/bin/true",), {}):
            pytest.fail("the jail has started")


async def test_missing_sockets_are_reported(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel discards descriptors beyond the limit of open files."""
    recv_fds = socket.recv_fds
    monkeypatch.setattr(
        "browser_shell.browser.chromium.jail.socket.recv_fds", lambda control, size, _: recv_fds(control, size, 1)
    )
    with pytest.raises(JailUnavailable, match="too many files are open"), anyio.fail_after(5):
        async with running_script(jail_settings(directory), WAIT):
            pytest.fail("the jail has started")


async def test_a_connection_carries_bytes_in_both_directions(directory: Path) -> None:
    script = """
import socket
with socket.create_server(("127.0.0.1", 9222)) as server:
    client, _ = server.accept()
    while data := client.recv(100):
        client.sendall(data)
"""
    async with running_script(jail_settings(directory), script) as jail, await connect(jail) as stream:
        await stream.send(b"hello")
        assert await read_until(stream, b"hello") == b"hello"
