"""The image as a running container with every lock, observed from outside and through /proc of the host."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browser_shell.ops.health import SOCKET_NAME, Health, ask_health
from support.engine import Engine
from support.pages import wait_until
from support.server import Server, Session, start_process, wait_ready

ROOT = Path(__file__).parents[2]
SECCOMP = ROOT / "deploy" / "image" / "seccomp.json"
TMPFS = "/tmp:noexec,nosuid,nodev,size=512m,mode=1777"  # noqa: S108  of the container
LOCKS: Mapping[str, tuple[str, ...]] = {
    "capabilities": ("--cap-drop", "ALL"),
    "privileges": ("--security-opt", "no-new-privileges"),
    "seccomp": ("--security-opt", f"seccomp={SECCOMP}"),
    "root": ("--read-only",),
    "tmp": ("--tmpfs", TMPFS),
    "memory": ("--memory", "2g"),
    "pids": ("--pids-limit", "512"),
}
_NUMBERS = itertools.count()
_DEVTOOLS_PORT = "9222"
_UID = 1000


def lock_flags(*, without: Sequence[str] = ()) -> list[str]:
    return [word for name, words in LOCKS.items() if name not in without for word in words]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Box:
    """A container that is ready."""

    engine: Engine
    name: str
    server: Server
    """Calls go through the published port; its process is the engine's client, not the server."""
    ready_seconds: float
    started: float = field(default_factory=time.monotonic)

    @property
    def pid(self) -> int:
        """Host pid of the container's first process."""
        return int(self.engine.inspect("container", self.name)["State"]["Pid"])

    def session(self, session_id: str = "s1") -> Session:
        return self.server.session(session_id)

    def processes(self) -> list[int]:
        """Host pids of all processes of the container, by cgroup."""
        cgroup = (Path("/proc") / str(self.pid) / "cgroup").read_text()
        return [pid for pid in _all_pids() if _cgroup(pid) == cgroup]

    def running(self, word: str) -> list[int]:
        """Processes with `word` in their command line."""
        return [pid for pid in self.processes() if word in command_line(pid)]

    def browser_pid(self) -> int:
        """Pid of Chromium's browser process."""
        processes = self.running("/usr/lib/chromium/chromium")
        return next(pid for pid in processes if "--type=" not in command_line(pid))

    def health(self) -> Health:
        return ask_health(Path(f"/proc/{self.pid}/root/tmp/browser-shell/{_DEVTOOLS_PORT}/{SOCKET_NAME}"))

    def wait_healthy(self, *, seconds: float) -> None:
        wait_until(lambda: self.health().ready, seconds=seconds, what="health")

    def inside(self, *words: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return self.engine.finish("exec", self.name, *words, seconds=seconds)

    def address(self) -> str:
        networks = self.engine.inspect("container", self.name)["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["IPAddress"])

    def terminate(self) -> tuple[int, float]:
        """Send SIGTERM like `docker stop`. Returns the exit code and the seconds until the end."""
        started_at = time.monotonic()
        self.engine.do("kill", "--signal", "TERM", self.name)
        exit_code = self.server.process.wait(30)
        return exit_code, time.monotonic() - started_at

    @property
    def output(self) -> str:
        return "".join(self.server.lines)


@contextmanager
def running_box(
    engine: Engine,
    *,
    network: str,
    policy: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    state: Sequence[str] = (),
    config: Mapping[str, str] | None = None,
) -> Iterator[Box]:
    """Run the image with every lock, and remove the container at the end.

    `state` are flags that mount the state. By default it is a directory of the host, where tests can read the log.
    `config` are more files beside the policy.
    """
    directory = Path(tempfile.mkdtemp(prefix="bsb-"))
    directory.chmod(0o755)
    (directory / "config").mkdir(mode=0o755)
    for file, content in {"browser-shell.policy.json": json.dumps(policy), **(config or {})}.items():
        (directory / "config" / file).write_text(content)
    (directory / "state").mkdir(mode=0o700)
    os.chown(directory / "state", _UID, _UID)
    name, port = f"bsb-{os.getpid()}-{next(_NUMBERS)}", free_port()
    settings = {
        "PUBLIC_HOSTS": f"127.0.0.1:{port}",
        "BROWSER_SHELL_REQUESTS_PER_SECOND": "10000",
        **(env or {}),
    }
    argv = engine.argv(
        *("run", "--name", name, "--network", network, "--publish", f"127.0.0.1:{port}:8080"),
        *lock_flags(),
        *("--volume", f"{directory / 'config'}:/etc/agent-browser:ro"),
        *(state or ("--volume", f"{directory / 'state'}:/var/lib/browser-shell")),
        *(word for key, value in settings.items() for word in ("--env", f"{key}={value}")),
        *engine.run_flags,
        *flags,
        engine.image,
    )
    started_at = time.monotonic()
    server = Server(
        process=start_process(argv, engine.env),
        runtime=directory,
        state=directory / "state",
        env=dict(engine.env),
        argv=argv,
    )
    try:
        wait_ready(server)
        assert server.port == port
        box = Box(engine=engine, name=name, server=server, ready_seconds=0)
        box.wait_healthy(seconds=30)
        box.ready_seconds = time.monotonic() - started_at
        yield box
    finally:
        engine.finish("rm", "--force", "--volumes", name)
        server.stop(signal.SIGTERM)
        shutil.rmtree(directory, ignore_errors=True)


def command_line(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _cgroup(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "cgroup").read_text()
    except OSError:
        return ""
