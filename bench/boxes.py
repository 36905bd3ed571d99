"""What a run starts and ends: a Chromium with its display for each peer, our server, the page server."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio.abc import Process
from anyio.from_thread import BlockingPortal

from browser_shell.browser.chromium.display import DisplaySettings, keep_window_manager, running_display
from browser_shell.browser.chromium.process import ChromiumSettings, chromium_argv, chromium_env
from browser_shell.process import orphans, spawn
from browser_shell.process.accounts import Account, make_private_directory
from browser_shell.settings import Settings

_READY_SECONDS = 60
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")
_TOKEN = re.compile(r"^ +token +([\w-]+\.[\w-]+\.[\w-]+)$")
_LAST_LINE = "Ctrl-C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What every subject shares."""

    settings: Settings
    account: Account | None
    folder: Path
    portal: BlockingPortal
    """Runs the product's own code that starts Chromium and its display, so that all subjects get the same one."""
    page_url: str
    page_port: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def work_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bshb-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@contextmanager
def page_server() -> Iterator[int]:
    """Gives the port of the login page."""
    process = subprocess.Popen([*_bound_to_us("KILL"), sys.executable, "-m", "bench.pages"], stdout=subprocess.PIPE)
    try:
        yield int(process.stdout.readline()) if process.stdout else 0
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@contextmanager
def chromium_box(setup: Setup, name: str) -> Iterator[int]:
    """A Chromium with the server's flags, outside the jail, on a display of its own. Gives its DevTools port."""
    base = make_private_directory(setup.folder / name, owner=None, mode=0o711)
    mine, theirs = partial(make_private_directory, owner=None), partial(make_private_directory, owner=setup.account)
    marks, logs, home, port = mine(base / "marks"), mine(base / "log"), theirs(base / "home"), free_port()
    width, height = setup.settings.display_width, setup.settings.display_height
    screen = DisplaySettings(
        directory=theirs(base / "x"),
        window_manager_home=mine(base / "empty", mode=0o555),
        marks=marks,
        logs=logs,
        width=width,
        height=height,
        account=setup.account,
    )
    chromium = ChromiumSettings(
        program=setup.settings.chromium,
        profile=home / "profile",
        home=home,
        temporary=theirs(base / "t"),
        marks=marks,
        logs=logs,
        port=port,
        width=width,
        height=height,
        proxy_port=1,
        timezone=setup.settings.timezone,
        account=setup.account,
    )
    portal = setup.portal
    with portal.wrap_async_context_manager(running_display(screen)) as display:
        manager = portal.start_task_soon(keep_window_manager, screen, display)
        try:
            with portal.wrap_async_context_manager(_running_chromium(chromium, display.env)) as process:
                _wait_for_devtools(process, port)
                yield port
        finally:
            manager.cancel()
            time.sleep(0.2)  # The manager's task ends its process before the display goes.


@asynccontextmanager
async def _running_chromium(settings: ChromiumSettings, display_env: Mapping[str, str]) -> AsyncIterator[Process]:
    # The proxy belongs to the jail, and only the server under test has one.
    argv = tuple(word for word in chromium_argv(settings) if not word.startswith("--proxy-"))
    with (settings.logs / "chromium.log").open("wb") as log:
        process = await spawn.start(
            spawn.Service(
                name="Chromium",
                argv=argv,
                env=chromium_env(settings, display_env),
                cwd=settings.home,
                account=settings.account,
                output=log,
            )
        )
    try:
        yield process
    finally:
        await spawn.stop(process, grace_seconds=2)


def _wait_for_devtools(process: Process, port: int) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while process.returncode is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/version", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("Chromium did not start")


@dataclass(slots=True, kw_only=True)
class OurServer:
    """A running `browser-shell serve`."""

    pid: int
    port: int
    token: str
    """Of the throw-away key that the server printed; '' when it asks for none."""


@contextmanager
def our_server(setup: Setup, name: str, command: Path, policy: Path) -> Iterator[OurServer]:
    """Starts a browser-shell command on free ports."""
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(setup.folder),
        "BROWSER_SHELL_POLICY": str(policy),
        "BROWSER_SHELL_RUNTIME_DIR": str(setup.folder / name),
        "BROWSER_SHELL_STATE_DIR": str(setup.folder / f"{name}-state"),
        "BROWSER_SHELL_DRIVER": str(setup.settings.driver),
        "BROWSER_SHELL_CHROMIUM": str(setup.settings.chromium),
        "BROWSER_REMOTE_DEBUGGING_PORT": "0",
        "PUBLIC_PORT": "0",
        "BROWSER_SHELL_REQUESTS_PER_SECOND": "10000",
    }
    process = subprocess.Popen(
        [*_bound_to_us("TERM"), str(command), "serve"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    reader = _Reader(process)
    try:
        port, token = reader.wait_ready()
        yield OurServer(pid=process.pid, port=port, token=token)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.close()


class _Reader:
    """Reads the server's output until it says where it listens, and goes on so that it never blocks."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[str] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait_ready(self) -> tuple[int, str]:
        """The port and the token."""
        self._ready.wait(_READY_SECONDS)
        ports = [found[1] for line in self._lines if (found := _ADDRESS.search(line))]
        tokens = [found[1] for line in self._lines if (found := _TOKEN.search(line))]
        if not ports:
            raise RuntimeError("browser-shell did not become ready:\n" + "".join(self._lines[-20:]))
        return int(ports[0]), tokens[0] if tokens else ""

    def close(self) -> None:
        self._thread.join(5)
        if self._process.stdout:
            self._process.stdout.close()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines = [*self._lines[-100:], line]
            if _LAST_LINE in line:
                self._ready.set()
        self._ready.set()


def _bound_to_us(signal_name: str) -> tuple[str, ...]:
    """Nothing outlives a benchmark that is killed."""
    return (spawn.SETPRIV, f"--pdeathsig={signal_name}", "--")


@contextmanager
def acting_as(account: Account | None) -> Iterator[None]:
    """Children started inside run as the account. Not by `user=`: that would make CPython fork instead of vfork."""
    if account is None:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(account.gid, account.gid, 0)
    os.setresuid(account.uid, account.uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


def end_daemon(sockets: Path, program: Path) -> None:
    """Ends the agent-browser daemons that wrote their pids here: never anybody else's."""
    for note in sockets.glob("*.pid"):
        pid = int(note.read_text())
        identity = orphans.identity_of(pid)
        if identity is not None and orphans.runs_program(pid, program):
            orphans.kill_now(identity)
            deadline = time.monotonic() + 2
            while not orphans.reap(pid) and time.monotonic() < deadline:
                time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class MachineTime:
    """Of all cores together, in ticks of the kernel's clock."""

    stolen: int
    """What a virtual machine's host gave to others while this machine had work to do."""
    whole: int

    @classmethod
    def now(cls) -> MachineTime:
        # Its last two count what guests of this machine took, which the others count already.
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return cls(stolen=ticks[7], whole=sum(ticks))

    def stolen_percent_since(self, before: MachineTime) -> float:
        return 100 * (self.stolen - before.stolen) / max(1, self.whole - before.whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Of one program, in MB; summed over its processes."""

    name: str
    processes: int
    rss: float
    pss: float


_NAMES = {
    "agent-browser": "driver daemon",
    "Xtigervnc": "Xvnc",
    "matchbox-window": "window manager",
}


def memory_below(root: int) -> list[Memory]:
    """Memory of the server and of everything it started but Chromium."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for pid in _descendants(root):
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
        if not sizes or name.startswith("chrom"):
            continue
        known = "server" if pid == root else next((_NAMES[key] for key in _NAMES if name.startswith(key)), name)
        groups.setdefault(known, []).append((sizes["Rss"], sizes["Pss"]))
    return [
        Memory(name=name, processes=len(each), rss=sum(rss for rss, _ in each), pss=sum(pss for _, pss in each))
        for name, each in groups.items()
    ]


def _descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found
