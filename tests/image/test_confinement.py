"""Privileges, namespaces and filters of the processes of a running container."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.boxes import Box, command_line
from support.pages import Site
from support.processes import status

JAIL_NETWORK_INTERFACES = {"lo"}


def inner(pid: int, path: str) -> Path:
    """A path in the mount namespace of a process."""
    return Path(f"/proc/{pid}/root") / path.lstrip("/")


def namespace(pid: int, kind: str) -> Path:
    return Path(f"/proc/{pid}/ns/{kind}").readlink()


@pytest.mark.promise("container:unprivileged")
def test_every_process_is_unprivileged_and_filtered(box: Box, site: Site) -> None:
    box.session("confined").ok("open", site.watch("").url)
    processes = box.processes()
    assert len(processes) > 6
    for pid in processes:
        if not status(pid, "Uid"):
            continue  # The process ended meanwhile.
        assert status(pid, "Uid").split() == ["1000"] * 4, command_line(pid)
        assert status(pid, "NoNewPrivs") == "1", command_line(pid)
        assert status(pid, "Seccomp") == "2", command_line(pid)
    programs = ("browser-shell serve", "Xtigervnc", "matchbox", "agent-browser")
    for pid in (box.browser_pid(), *(pid for word in programs for pid in box.running(word))):
        assert int(status(pid, "CapBnd") or "0", 16) == 0, command_line(pid)


@pytest.mark.promise("container:chromium-sandboxed")
def test_renderers_are_in_chromiums_sandbox_inside_the_jail(box: Box, site: Site) -> None:
    box.session("confined").ok("open", site.watch("").url)
    assert not [pid for pid in box.processes() if "--no-sandbox" in command_line(pid)]
    renderers = box.running("--type=renderer")
    assert renderers
    server_namespace = namespace(box.pid, "user")
    for pid in renderers:
        # One filter of the engine and one of Chromium.
        assert int(status(pid, "Seccomp_filters")) >= 2
        # One pid each in the host, the container and Chromium's own pid namespace.
        assert len(status(pid, "NSpid").split()) >= 3
        assert namespace(pid, "user") != server_namespace


@pytest.mark.promise("container:browser-has-loopback-only")
def test_chromium_sees_no_interface_but_loopback(box: Box) -> None:
    browser = box.browser_pid()
    assert namespace(browser, "net") != namespace(box.pid, "net")
    lines = Path(f"/proc/{browser}/net/dev").read_text().splitlines()[2:]
    assert {line.split(":")[0].strip() for line in lines} == JAIL_NETWORK_INTERFACES


@pytest.mark.promise("container:browser-sees-no-state")
def test_chromium_sees_no_state_and_has_the_servers_managed_policy(box: Box) -> None:
    browser = box.browser_pid()
    assert [path.name for path in inner(box.pid, "/var/lib/browser-shell").iterdir()] == ["9222"]
    assert list(inner(browser, "/var/lib/browser-shell").iterdir()) == []
    assert list(inner(browser, "/etc/agent-browser").iterdir()) == []
    managed = inner(browser, "/etc/chromium/policies/managed/browser-shell.json")
    assert json.loads(managed.read_text())["DownloadRestrictions"] == 3
    # The server's own policy is on the temporary file system, the image's is not.
    assert managed.stat().st_dev != inner(box.pid, "/etc/chromium").stat().st_dev
    assert "jail_cannot_mount" not in box.output


def test_the_image_itself_has_a_managed_policy_for_hosts_that_forbid_mounting(box: Box) -> None:
    managed = json.loads(inner(box.pid, "/etc/chromium/policies/managed/browser-shell.json").read_text())
    assert "file://*" in managed["URLBlocklist"]
    assert (managed["SSLErrorOverrideAllowed"], managed["AuthSchemes"]) == (False, "")


@pytest.mark.promise("container:read-only")
def test_only_tmp_and_the_state_are_writable(box: Box) -> None:
    result = box.inside(
        *("/opt/browser-shell/bin/python", "-c"),
        "import os\n"
        "places = ['/', '/etc', '/usr/bin', '/opt/browser-shell', '/home', '/root', '/var', '/etc/agent-browser',"
        " '/var/lib/browser-shell', '/tmp']\n"
        "print([place for place in places if os.access(place, os.W_OK)])",
    )
    assert result.stdout.strip() == "['/var/lib/browser-shell', '/tmp']"


@pytest.mark.promise("container:no-exec-in-tmp")
def test_files_in_tmp_cannot_be_executed(box: Box) -> None:
    result = box.inside(
        *("/opt/browser-shell/bin/python", "-c"),
        "import os, shutil\nshutil.copy('/usr/bin/true', '/tmp/t'); os.chmod('/tmp/t', 0o755)\n"
        "os.execv('/tmp/t', ['t'])",
    )
    assert result.returncode != 0
    assert "PermissionError" in result.stderr


def test_processes_of_the_same_account_cannot_read_the_servers_environment(box: Box) -> None:
    """The reader runs as the same account, like the driver. The server is not dumpable, so the kernel denies access."""
    result = box.inside("/opt/browser-shell/bin/python", "-c", "open('/proc/1/environ', 'rb').read()")
    assert "PermissionError" in result.stderr


@pytest.mark.parametrize(
    "call",
    [
        "libc.syscall(101, 0, 0, 0, 0)",  # ptrace
        "libc.syscall(425, 1, 0)",  # io_uring_setup
        "libc.unshare(0x10000000 | 0x04000000)",  # a user and a UTS namespace
        "libc.socket(40, 1, 0)",  # vsock: out of the virtual machine
        "libc.syscall(250, 0, 0, 0)",  # keyctl
        "libc.socket(16, 3, 12)",  # netlink to the firewall
        "libc.socket(16, 3, 6)",  # netlink to IPsec
        "libc.socket(2, 2, 136)",  # UDP-Lite
        "libc.socket(10, 1, 262)",  # multipath TCP
        "libc.socketpair(30, 1, 0, (ctypes.c_int * 2)())",  # TIPC
    ],
)
def test_the_filter_refuses_unneeded_system_calls(box: Box, call: str) -> None:
    if os.uname().machine != "x86_64":
        call = call.replace("syscall(101", "syscall(117").replace("syscall(250", "syscall(219")
    code = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint({call}, ctypes.get_errno())"
    assert box.inside("/opt/browser-shell/bin/python", "-c", code).stdout.split() == ["-1", "1"]


@pytest.mark.promise("container:filter-is-minimal")
def test_the_filter_protects_the_firewall_in_a_new_network_namespace(box: Box) -> None:
    """A process has every capability in a user and network namespace of its own, so only the filter restricts it."""
    code = (
        "import ctypes, socket\n"
        "print(ctypes.CDLL(None).unshare(0x50020000))\n"
        "for words in [(16, 3, 12), (16, 3, 6), (2, 3, 6), (10, 3, 255), (2, 2, 1), (2, 1, 132)]:\n"
        "    try: socket.socket(*words); print('open', words)\n"
        "    except OSError as error: print(error.errno)\n"
        "for family, level, option in [(2, 0, 64), (10, 41, 64), (2, 0, 17), (2, 6, 31)]:\n"
        "    try: socket.socket(family).setsockopt(level, option, b''); print('open', level, option)\n"
        "    except OSError as error: print(error.errno)\n"
        "for words in [(16, 3, 0), (2, 1, 6), (2, 2, 17), (10, 1, 0), (10, 2, 0), (1, 5, 0)]:\n"
        "    socket.socket(*words).close()"
    )
    result = box.inside("/opt/browser-shell/bin/python", "-W", "ignore", "-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["0"] + ["1"] * 10
