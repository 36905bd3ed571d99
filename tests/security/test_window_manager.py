"""The window manager starts no program, whatever keys are pressed in the live view."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from support.pages import Site, running_site, wait_until
from support.processes import alive, argv, descendants, program
from support.server import Server, running_server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount stand-ins over /usr/bin"),
]

DEBIAN_SHORTCUTS = Path("/etc/matchbox/kbdconfig")
PROGRAMS = ("xterm", "rxvt", "matchbox-remote", "gpe-calender")  # As kbdconfig spells them.
KEYSYMS = {
    "<alt>": 0xFFE9,
    "<ctrl>": 0xFFE3,
    "<shift>": 0xFFE1,
    "tab": 0xFF09,
    "space": 0x20,
    "escape": 0xFF1B,
    "f4": 0xFFC1,
    "f11": 0xFFC8,
}
CLICK = struct.pack(">BBHH", 5, 1, 640, 600) + struct.pack(">BBHH", 5, 0, 640, 600)
LISTENING = "<script>addEventListener('keydown', event => report(event.key))</script>"


@dataclass(frozen=True)
class Box:
    """A server whose /usr/bin holds stand-ins for the programs that matchbox's default shortcuts start."""

    server: Server
    site: Site
    runs: Path
    """One line for each run of a stand-in."""

    def window_manager(self) -> int:
        pids: list[int] = []

        def is_running() -> bool:
            processes = descendants(self.server.process.pid)
            pids[:] = [pid for pid in processes if program(pid) == "matchbox-window-manager" and alive(pid)]
            return len(pids) == 1

        wait_until(is_running, what="one window manager")
        return pids[0]

    @contextmanager
    def control(self) -> Iterator[ClientConnection]:
        """The socket of a viewer with mouse and keyboard."""
        address = f"127.0.0.1:{self.server.port}"
        request = http.client.HTTPConnection(address, timeout=10)
        try:
            headers = {**self.server.authorization, "Content-Type": "application/json"}
            request.request("POST", "/tickets", json.dumps({"mode": "control"}), headers)
            ticket = json.loads(request.getresponse().read())["ticket"]
        finally:
            request.close()
        url = f"ws://{address}/vnc/websockify?ticket={ticket}"
        origin = Origin(f"http://{address}")
        with connect(url, origin=origin, max_size=None, compression=None, proxy=None) as viewer:
            viewer.send(b"RFB 003.008\n\x01\x01")
            yield viewer


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    directory = Path(tempfile.mkdtemp(prefix="wm-", dir="/tmp"))
    directory.chmod(0o755)
    runs = directory / "runs"
    runs.touch()
    runs.chmod(0o666)
    stand_ins = directory / "bin"
    stand_ins.mkdir(mode=0o755)
    for name in PROGRAMS:
        # The stand-in runs for 5 s, so that it also shows up as a child process.
        (stand_ins / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {runs}\nexec sleep 5\n', encoding="utf-8")
        (stand_ins / name).chmod(0o755)
    # The mount namespace of this server alone has the stand-ins.
    overlay = f'mount -t overlay overlay -o lowerdir={stand_ins}:/usr/bin /usr/bin && exec "$@"'
    try:
        with running_site() as site:
            policy = {"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}}
            with running_server(policy, wrapper=("unshare", "--mount", "sh", "-c", overlay, "sh")) as server:
                yield Box(server, site, runs)
    finally:
        shutil.rmtree(directory)


def debian_shortcuts() -> list[str]:
    """The keys of Debian's configuration, for example `<ctrl><alt>x`; those that start programs come first."""
    lines = DEBIAN_SHORTCUTS.read_text(encoding="utf-8").splitlines()
    bindings = [line.strip().partition("=") for line in lines if "=" in line and not line.startswith("#")]
    return [keys.lower() for keys, _, action in sorted(bindings, key=lambda binding: binding[2][0] != "!")]


def press(keys: str) -> bytes:
    """RFB messages that press and release a shortcut."""
    symbols = [KEYSYMS.get(name) or ord(name) for name in keys.replace(">", "> ").split()]
    strokes = [(1, symbol) for symbol in symbols] + [(0, symbol) for symbol in reversed(symbols)]
    return b"".join(struct.pack(">BBxxI", 4, down, symbol) for down, symbol in strokes)


@pytest.mark.promise("view:no-program-shortcuts")
def test_no_default_shortcut_starts_a_program(box: Box) -> None:
    shortcuts = debian_shortcuts()
    assert shortcuts[:5] == ["<alt>m", "<ctrl><alt>x", "<ctrl><alt>r", "<ctrl><alt>e", "<alt>escape"]
    window_manager = box.window_manager()
    page = box.site.watch(LISTENING)
    box.server.session("shortcuts").ok("open", page.url)
    with box.control() as viewer:
        viewer.send(CLICK + press("k"))
        page.wait_for("k")
        for shortcut in shortcuts[:5]:
            viewer.send(press(shortcut))
        page.wait_for("x", "r", "e")  # The window manager has not grabbed these keys, so the page gets them.
        assert children_within(1, window_manager) == []
        assert box.runs.read_text(encoding="utf-8") == ""
        for shortcut in shortcuts[5:]:
            viewer.send(press(shortcut))
        assert children_within(1, window_manager) == []
    assert box.runs.read_text(encoding="utf-8") == ""
    assert box.window_manager() == window_manager


@pytest.mark.promise("view:no-program-shortcuts")
@pytest.mark.parametrize("name", ["x", "empty"])
def test_shortcuts_in_a_directory_of_the_browsers_account_are_ignored(box: Box, name: str) -> None:
    directory = box.server.devtools_directory / name / ".matchbox"
    directory.mkdir(mode=0o755)
    (directory / "kbdconfig").write_text("<ctrl><alt>y=!/usr/bin/xterm\n", encoding="ascii")
    old = box.window_manager()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not alive(old), what="the end of the window manager")
    window_manager = box.window_manager()
    with box.control() as viewer:
        for _ in range(20):  # The window manager needs some time until it would have grabbed the key.
            viewer.send(press("<ctrl><alt>y"))
            assert children_within(0.1, window_manager) == []
    assert box.runs.read_text(encoding="utf-8") == ""
    shutil.rmtree(directory)


def test_the_window_manager_has_no_key_configuration_no_programs_and_an_empty_home(box: Box) -> None:
    pid = box.window_manager()
    env = dict(entry.split("=", 1) for entry in Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0"))
    # Chromium runs under the same account and could replace a file, but not /dev/null.
    assert argv(pid)[1:] == ["-use_titlebar", "yes", "-kbdconfig", "/dev/null"]
    assert (stat.S_IMODE(Path(env["HOME"]).stat().st_mode), list(Path(env["HOME"]).iterdir())) == (0o555, [])
    assert not Path(env["PATH"]).exists()


def children_within(seconds: float, pid: int) -> list[list[str]]:
    """The command lines of all children that a process has at any time in this period."""
    children: dict[int, list[str]] = {}
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        children |= {child: argv(child) for child in descendants(pid)}
        time.sleep(0.02)
    return list(children.values())
