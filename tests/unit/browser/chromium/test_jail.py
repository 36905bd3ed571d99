"""What a program in the jail can see and do. The program here is a small script; the browser comes elsewhere."""

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

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream

from browser_shell.browser.chromium import jail as jail_module
from browser_shell.browser.chromium.jail import PROXY_PORT, Jail
from browser_shell.core.errors import BrowserUnavailable, JailUnavailable
from support.call_filters import output_behind_filter
from support.egress import read_all, read_until
from support.jails import a_jail, facts, in_same_network, is_alive, jail_settings, said_inside

WAIT = "import time; time.sleep(60)"
SAY_INSIDE = """
import socket
with socket.create_server(("127.0.0.1", 9222)) as server:
    while True:
        client, _ = server.accept(); client.sendall(b"inside"); client.close()
"""
MOUNT = {"x86_64": 165, "aarch64": 40}
# What became of a jail whose program writes a file; it is run where mounting is forbidden.
TRY_JAIL = """
import anyio, json
from pathlib import Path
from browser_shell.core.errors import JailUnavailable
from support.jails import a_jail, jail_settings
async def outcome():
    try:
        async with a_jail(jail_settings(Path({folder!r}), must_hide={must_hide}), "open({ran!r}, 'w')") as jail:
            await jail.process.wait()
        return "a jail"
    except JailUnavailable as fault:
        return fault.public_message
print(json.dumps(anyio.run(outcome)))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's: the account could not enter it."""
    path = Path(tempfile.mkdtemp(prefix="bsh-jail-", dir="/tmp"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.promise("jail: there is no network inside but loopback, and no way to another")
async def test_there_is_no_way_out(folder: Path) -> None:
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
        seen = await said_inside(jail_settings(folder), script)
        with pytest.raises(BlockingIOError):
            canary.accept()
    assert seen["interfaces"] == ["lo"]
    assert seen["routes"] == []
    assert errno_names(seen) == {
        "canary": "ECONNREFUSED",
        "documentation": "ENETUNREACH",
        "documentation6": "ENETUNREACH",
    }


def errno_names(seen: dict[str, int]) -> dict[str, str]:
    return {name: errno.errorcode[seen[name]] for name in ("canary", "documentation", "documentation6")}


@pytest.mark.promise("jail: nothing inside has a capability or can gain one, and nothing is root")
async def test_nothing_inside_has_power(folder: Path) -> None:
    async with a_jail(jail_settings(folder), WAIT) as jail:
        # The helper has become the program: nobody else is in there.
        assert in_same_network(jail.process.pid) == [jail.process.pid]
        status = facts(jail.process.pid)
        assert {status[name] for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        assert "0" not in status["Uid"].split()


async def test_the_program_inherits_nothing_that_the_helper_opened(folder: Path) -> None:
    script = """
import os
print(json.dumps([os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")
    if os.path.exists(f"/proc/self/fd/{number}")]))"""
    opened = await said_inside(jail_settings(folder), script)
    assert sorted(set(opened)) == ["/dev/null", str(folder / "log" / "chromium.log")]


async def test_the_program_cannot_leave_or_add_an_interface(folder: Path) -> None:
    script = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tries(number):
    outer = open(f"/proc/{number}/ns/net") if os.path.exists(f"/proc/{number}/ns/net") else None
    return libc.setns(outer.fileno(), 0) if outer else -1
def raw():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW); return 0
    except OSError: return -1
def opened(number):
    try: return tries(number)
    except OSError: return -1
print(json.dumps({"init": opened(1), "server": opened(%d), "raw": raw(),
    "mount": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)}))"""
    seen = await said_inside(jail_settings(folder), script % os.getpid())
    assert seen == {"init": -1, "server": -1, "raw": -1, "mount": -1}


@pytest.mark.promise("jail: people's folders are not there, and the browser's policy is this server's")
async def test_folders_are_hidden_and_the_policy_lies_in_their_place(folder: Path) -> None:
    script = """
import os
def look(path):
    try: return sorted(os.listdir(path))
    except OSError: return "refused"
def write(path):
    try: open(path, "w").close(); return True
    except OSError: return False
print(json.dumps({"home": look("/home"), "root": look("/root"), "srv": look("/srv"), "policy": look("/etc/chromium"),
    "wrote": [write("/etc/chromium/x"), write("/home/x"), write("/root/x")]}))"""
    seen = await said_inside(jail_settings(folder), script)
    assert seen == {"home": [], "root": [], "srv": [], "policy": ["here.json"], "wrote": [False, False, False]}
    assert not Path("/etc/chromium/here.json").exists()


def outcome_without_mounting(folder: Path, *, must_hide: bool) -> tuple[str, bool]:
    """What became of it, and whether the program ran."""
    ran = folder / "home" / "ran"
    script = TRY_JAIL.format(folder=str(folder), ran=str(ran), must_hide=must_hide)
    return str(output_behind_filter([MOUNT[platform.machine()]], script, error=errno.EPERM)), ran.exists()


@pytest.mark.promise("container: the browser sees neither the audit log nor the key nor the policy")
def test_where_folders_must_be_hidden_and_cannot_there_is_no_jail(folder: Path) -> None:
    said, ran = outcome_without_mounting(folder, must_hide=True)
    assert "BROWSER_SHELL_UNSAFE_MISSING_LOCKS=mounts" in said
    assert "--security-opt apparmor=unconfined" in said
    assert not ran


def test_elsewhere_a_jail_that_cannot_hide_folders_is_one(folder: Path) -> None:
    assert outcome_without_mounting(folder, must_hide=False) == ("a jail", True)


async def test_every_loopback_address_inside_leads_to_the_proxys_listener(folder: Path) -> None:
    script = f"""
import socket
for address in ("127.0.0.1", "127.1.0.7", "127.250.3.4"):
    with socket.create_connection((address, {PROXY_PORT}), 5) as s:
        s.recv(1)
"""
    async with a_jail(jail_settings(folder), script) as jail:
        seen = []
        for _ in range(3):
            with anyio.fail_after(5):
                await anyio.wait_readable(jail.proxy_listener)
            client, _peer = jail.proxy_listener.accept()
            with client:
                seen.append(client.getsockname()[0])
    assert seen == ["127.0.0.1", "127.1.0.7", "127.250.3.4"]


async def connected(jail: Jail) -> SocketStream:
    """Waits until the program inside listens."""
    with anyio.fail_after(5):
        while True:
            try:
                return await SocketStream.from_socket(await jail.connect())
            except BrowserUnavailable:
                await anyio.sleep(0.02)


async def test_the_server_reaches_the_programs_port_and_only_that(folder: Path) -> None:
    async with a_jail(jail_settings(folder), SAY_INSIDE) as jail:
        async with await connected(jail) as stream:
            assert await read_all(stream) == b"inside"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", PROXY_PORT), 1)


async def test_the_doors_can_be_used_any_number_of_times_and_at_one_time(folder: Path) -> None:
    async with a_jail(jail_settings(folder), SAY_INSIDE) as jail:
        async with await connected(jail) as stream:
            assert await read_all(stream) == b"inside"
        heard = []

        async def visit() -> None:
            for _ in range(20):
                async with await SocketStream.from_socket(await jail.connect()) as stream:
                    heard.append(await read_all(stream))

        async with anyio.create_task_group() as visitors:
            for _ in range(10):
                visitors.start_soon(visit)
        assert heard == [b"inside"] * 200


async def test_a_visit_that_is_broken_off_harms_no_later_one(folder: Path) -> None:
    async with a_jail(jail_settings(folder), SAY_INSIDE) as jail:
        await (await connected(jail)).aclose()
        files = len(list(Path("/proc/self/fd").iterdir()))

        async def visit() -> None:
            (await jail.connect()).close()

        for steps in range(12):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(visit)
                    for _ in range(steps):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
        assert len(list(Path("/proc/self/fd").iterdir())) == files
        for _ in range(3):
            async with await SocketStream.from_socket(await jail.connect()) as stream:
                assert await read_all(stream) == b"inside"


FIND_DOOR = """
import socket
rows = [line.split() for line in open("/proc/net/tcp").read().splitlines()[1:]]
listening = [row[1].split(":") for row in rows if row[3] == "0A"]
((address, port),) = [(address, port) for address, port in listening if int(port, 16) != 3128]
door = (socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16))
"""


async def test_a_program_that_calls_at_the_servers_door_is_sent_away(folder: Path) -> None:
    """It can find the door; and all that it gets for it is a connection that ends."""
    script = f"""{FIND_DOOR}
callers = [socket.socket() for _ in range(40)]
for caller in callers:
    caller.setblocking(False)
    try: caller.connect(door)
    except BlockingIOError: pass
{SAY_INSIDE}"""
    async with a_jail(jail_settings(folder), script) as jail:
        for _ in range(3):
            async with await connected(jail) as stream:
                assert await read_all(stream) == b"inside"


async def test_the_servers_door_takes_no_port_that_the_program_may_want(folder: Path) -> None:
    script = f"{FIND_DOOR}\nsocket.create_server(('127.0.0.1', door[1]))\nprint(json.dumps(door))"
    assert (await said_inside(jail_settings(folder), script))[0] == "127.0.0.2"


async def test_a_port_that_nobody_listens_on_is_a_clear_fault(folder: Path) -> None:
    async with a_jail(jail_settings(folder), WAIT) as jail:
        with pytest.raises(BrowserUnavailable):
            await jail.connect()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_program_is_the_end_of_its_jail(folder: Path, number: signal.Signals) -> None:
    async with a_jail(jail_settings(folder), WAIT) as jail:
        os.kill(jail.process.pid, number)
        with anyio.fail_after(5):
            assert await jail.process.wait() == -number
        with pytest.raises(BrowserUnavailable):
            await jail.connect()


async def test_leaving_the_block_ends_the_program(folder: Path) -> None:
    settings = jail_settings(folder)
    async with a_jail(settings, WAIT) as jail:
        assert (settings.marks / "chromium").exists()
    assert not is_alive(jail.process.pid)
    assert not (settings.marks / "chromium").exists()


async def test_the_programs_exit_code_is_the_jails(folder: Path) -> None:
    async with a_jail(jail_settings(folder), "raise SystemExit(7)") as jail:
        with anyio.fail_after(5):
            assert await jail.process.wait() == 7


async def test_a_program_that_is_not_there_is_named_in_the_log(folder: Path) -> None:
    settings = jail_settings(folder)
    async with jail_module.running_jail(settings, ("/nonexistent/chromium",), {}) as jail:
        with anyio.fail_after(5):
            assert await jail.process.wait() == 127
    assert (settings.logs / "chromium.log").read_text() == "/nonexistent/chromium: No such file or directory\n"


@pytest.mark.promise("jail: no jail, no start")
async def test_a_step_that_fails_means_no_jail_at_all(folder: Path) -> None:
    settings = jail_settings(folder, chromium_policies=folder / "missing")
    with pytest.raises(JailUnavailable) as fault:
        async with a_jail(settings, f"open({str(folder / 'home' / 'ran')!r}, 'w')"):
            pytest.fail("there is no jail")
    assert "mount /etc/chromium" in fault.value.public_message
    assert "sysctl kernel.unprivileged_userns_clone=1" in fault.value.public_message
    assert not (folder / "home" / "ran").exists()
    assert not (settings.marks / "chromium").exists()


async def test_a_helper_that_dies_at_once_is_no_jail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jail_module, "INTERPRETER", Path("/bin/false"))
    with pytest.raises(JailUnavailable), anyio.fail_after(3):
        async with jail_module.running_jail(jail_settings(folder), ("/bin/true",), {}):
            pytest.fail("there is no jail")


async def test_sockets_that_do_not_come_through_mean_no_jail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when no more files may be opened: the kernel then drops what it has no number for."""
    receive = socket.recv_fds
    monkeypatch.setattr(
        "browser_shell.browser.chromium.jail.socket.recv_fds", lambda control, size, _: receive(control, size, 1)
    )
    with pytest.raises(JailUnavailable, match="too many files are open"), anyio.fail_after(5):
        async with a_jail(jail_settings(folder), WAIT):
            pytest.fail("there is no jail")


async def test_an_inner_connection_carries_bytes_both_ways(folder: Path) -> None:
    script = """
import socket
with socket.create_server(("127.0.0.1", 9222)) as server:
    client, _ = server.accept()
    while data := client.recv(100):
        client.sendall(data)
"""
    async with a_jail(jail_settings(folder), script) as jail, await connected(jail) as stream:
        await stream.send(b"hello")
        assert await read_until(stream, b"hello") == b"hello"
