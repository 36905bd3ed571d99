"""Programs of a benchmark run: a Chromium with a display for each subject, the server, the page server."""

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
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio.from_thread import BlockingPortal

from browser_shell.browser.chromium.display import RunningDisplay, keep_window_manager, running_display
from browser_shell.browser.chromium.process import (
    ChromiumSettings,
    chromium_argv,
    chromium_env,
    connect_directly,
    devtools_url,
)
from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout, claimed_layout
from browser_shell.browser.chromium.services import running_service
from browser_shell.process import orphans, spawn
from browser_shell.process.accounts import Account
from browser_shell.settings import Settings

_READY_SECONDS = 60
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")
_TOKEN = re.compile(r"^ +token +([\w-]+\.[\w-]+\.[\w-]+)$")
_LAST_LINE = "Ctrl-C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings that all subjects share."""

    settings: Settings
    account: Account | None
    folder: Path
    portal: BlockingPortal
    """Runs the coroutines of the product that start Chromium and its display."""
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
    """Yield the port of the login page."""
    process = subprocess.Popen([*_ended_with_us("KILL"), sys.executable, "-m", "bench.pages"], stdout=subprocess.PIPE)
    try:
        yield int(process.stdout.readline()) if process.stdout else 0
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@contextmanager
def chromium_box(setup: Setup, name: str) -> Iterator[int]:
    """Run Chromium with the server's flags outside the jail, on a display of its own. Yield its DevTools port."""
    portal, port = setup.portal, free_port()
    width, height = setup.settings.display_width, setup.settings.display_height
    with claimed_layout(setup.folder / name, port, setup.account) as layout:
        chromium = ChromiumSettings(
            program=setup.settings.chromium,
            layout=layout,
            port=port,
            width=width,
            height=height,
            proxy_port=1,
            timezone=setup.settings.timezone,
        )
        with (
            portal.wrap_async_context_manager(running_display(layout, width=width, height=height)) as display,
            portal.wrap_async_context_manager(_running_window_manager(layout, display)),
            portal.wrap_async_context_manager(chromium_without_proxy(chromium, display.env)),
        ):
            yield port


@asynccontextmanager
async def _running_window_manager(layout: RuntimeLayout, display: RunningDisplay) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_window_manager, layout, display)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def chromium_without_proxy(settings: ChromiumSettings, display_env: Mapping[str, str]) -> AsyncIterator[None]:
    """Run the server's Chromium outside of the jail and without a proxy, and wait for its DevTools."""
    argv = tuple(argument for argument in chromium_argv(settings) if not argument.startswith("--proxy-"))
    async with running_service(
        "chromium",
        argv=(*argv, "--no-proxy-server"),
        env=chromium_env(settings, display_env),
        cwd=settings.layout.chromium_home,
        layout=settings.layout,
        grace_seconds=2,
    ) as process:
        await devtools_url(settings.port, partial(connect_directly, settings.port), process=process)
        yield


@dataclass(slots=True, kw_only=True)
class OurServer:
    """A running `browser-shell serve`."""

    pid: int
    port: int
    token: str
    """Printed by the server; empty when the server requires none."""


@contextmanager
def our_server(setup: Setup, name: str, command: Path, policy: Path) -> Iterator[OurServer]:
    """Run `browser-shell serve` on free ports."""
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
        [*_ended_with_us("TERM"), str(command), "serve"],
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
    """Reads the output of the server to its end, so that the server never blocks on a full pipe."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[str] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait_ready(self) -> tuple[int, str]:
        """Return the port and the token."""
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


def _ended_with_us(signal_name: str) -> tuple[str, ...]:
    """Arguments in front of a command that end it when the benchmark is killed."""
    return (spawn.SETPRIV, f"--pdeathsig={signal_name}", "--")


@contextmanager
def acting_as(account: Account | None) -> Iterator[None]:
    """Run child processes of this block as the account. With Popen's `user=`, CPython would not use vfork."""
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
    """End the agent-browser daemons whose pid files are in this directory."""
    for path in sockets.glob("*.pid"):
        pid = int(path.read_text())
        identity = orphans.identity_of(pid)
        if identity is not None and orphans.runs_program(pid, program):
            orphans.kill_now(identity)
            deadline = time.monotonic() + 2
            while not orphans.reap(pid) and time.monotonic() < deadline:
                time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class MachineTime:
    """Processor time of all cores, in clock ticks."""

    stolen: int
    """Time that the host of this virtual machine gave to other machines."""
    total: int

    @classmethod
    def now(cls) -> MachineTime:
        # The last two fields are the time of guests, which the other fields include.
        ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return cls(stolen=ticks[7], total=sum(ticks))

    def stolen_percent_since(self, before: MachineTime) -> float:
        return 100 * (self.stolen - before.stolen) / max(1, self.total - before.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of one program in MB, summed over its processes."""

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
    """Return the memory of the server and of all processes it started, without Chromium."""
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
        label = "server" if pid == root else next((_NAMES[key] for key in _NAMES if name.startswith(key)), name)
        groups.setdefault(label, []).append((sizes["Rss"], sizes["Pss"]))
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
