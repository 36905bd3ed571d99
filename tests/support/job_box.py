"""Runs hostile and ordinary code in real job containers, and looks at what is left of them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from browser_shell.core.containers import ContainerLimits, ContainerOrder, ContainerReport
from browser_shell.jobs.containers.engine import DisposableContainers, ServerLock
from browser_shell.server.browser_server import SystemClock

ROOT = Path(__file__).parent.parent.parent
MIB = 1024 * 1024
IMAGES = {"docker": "browser-shell/jobs:latest", "podman": "localhost/browser-shell/jobs:latest"}
QUICK = ContainerLimits(timeout_seconds=30)
_HELPERS_END_SECONDS = 10


@functools.cache
def engine_address(name: str) -> str:
    """Installs and starts the engine when none answers."""
    told = subprocess.run([ROOT / "scripts/engine", name], capture_output=True, text=True, timeout=600, check=True)
    return told.stdout.splitlines()[-1]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that is over."""

    report: ContainerReport
    folder: Path

    @property
    def log(self) -> bytes:
        return (self.folder / "log").read_bytes()

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*"))


@dataclass(kw_only=True)
class JobBox:
    """An engine with our image, and a server's identity."""

    name: str
    folder: Path
    address: str = ""
    lock: ServerLock = field(init=False)
    containers: DisposableContainers = field(init=False)
    image_id: str = ""

    def __post_init__(self) -> None:
        self.address = self.address or engine_address(self.name)
        self.lock = ServerLock(self.folder / "servers", uuid.uuid4().hex)
        self.lock.acquire()
        self.containers = DisposableContainers(address=self.address, lock=self.lock, clock=SystemClock())
        if not self.image_id:
            self.image_id = anyio.run(self.containers.image_id, IMAGES[self.name])

    def order(
        self, argv: Iterable[str], *, files: dict[str, str] | None = None, limits: ContainerLimits = QUICK
    ) -> ContainerOrder:
        run_id = uuid.uuid4().hex
        folder = self.folder / run_id
        folder.mkdir(mode=0o700, parents=True)
        workspace = folder / "workspace"
        workspace.mkdir()
        for name, text in (files or {}).items():
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        subprocess.run(["chmod", "-R", "a+rX", workspace], check=True, timeout=10)
        return ContainerOrder(
            run_id=run_id,
            image=self.image_id,
            argv=tuple(argv),
            workspace=workspace,
            output=folder / "output",
            log_path=folder / "log",
            limits=limits,
        )

    async def finish(
        self,
        order: ContainerOrder,
        *,
        on_output: Callable[[bytes], None] = lambda _: None,
        on_made: Callable[[str], None] = lambda _: None,
    ) -> Finished:
        async def before_start(container_id: str) -> None:
            on_made(container_id)

        report = await self.containers.run(order, on_output=on_output, before_start=before_start)
        return Finished(report=report, folder=order.output.parent)

    async def sweep(self) -> list[str]:
        async def before_remove(run_id: str, container_id: str) -> None:
            assert self.client("inspect", "--format", "{{.Id}}", container_id).strip() == container_id

        return await self.containers.sweep(before_remove)

    def run(self, *argv: str, files: dict[str, str] | None = None, limits: ContainerLimits = QUICK) -> Finished:
        return anyio.run(self.finish, self.order(argv, files=files, limits=limits))

    def python(self, code: str, *, limits: ContainerLimits = QUICK, files: dict[str, str] | None = None) -> Finished:
        return self.run("python", "/work/program.py", files={"program.py": code, **(files or {})}, limits=limits)

    def outcomes(self, codes: dict[str, str]) -> dict[str, dict[str, Any]]:
        """Runs each piece of code in a process of its own, all in one container, and tells how each ended."""
        files = {"codes.json": json.dumps(codes), "program.py": _JUDGE}
        finished = self.run("python", "/work/program.py", files=files, limits=ContainerLimits(timeout_seconds=60))
        assert finished.report.exit_code == 0, finished.log[-2000:]
        told: dict[str, dict[str, Any]] = json.loads(finished.log.splitlines()[-1])
        return told

    def labelled(self, run_id: str | None = None) -> list[str]:
        """Ids of the containers that this server, or one run of it, has on the engine."""
        label = f"browser-shell.run={run_id}" if run_id else f"browser-shell.server={self.lock.server_id}"
        listed = self.client("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={label}")
        return listed.split()

    def client(self, *words: str) -> str:
        """The engine's own command line, for what a test must see without our code."""
        program = ["docker", "--host"] if self.name == "docker" else ["podman", "--remote", "--url"]
        done = subprocess.run([*program, self.address, *words], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def close(self) -> None:
        self.lock.release()
        shutil.rmtree(self.folder, ignore_errors=True)


def processes_mentioning(text: str) -> list[int]:
    """Host processes in a cgroup, or with a command line, that mentions the text."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                facts = (folder / "cgroup").read_text("utf-8") + (folder / "cmdline").read_text("utf-8", "replace")
            except OSError:
                continue
            if text in facts:
                found.append(int(folder.name))
    return found


def processes_left(text: str) -> list[int]:
    """Those that stay. An engine's own helpers end a moment after the container that they served."""
    deadline = time.monotonic() + _HELPERS_END_SECONDS
    while (found := processes_mentioning(text)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


_JUDGE = """
import json, subprocess, sys
codes = json.load(open("/work/codes.json"))
wrapper = '''
import sys, json
try:
    exec(compile(sys.stdin.read(), "attack", "exec"), {"__name__": "__main__"})
except BaseException as error:
    print(json.dumps([kind.__name__ for kind in type(error).__mro__]), file=sys.stderr)
    sys.exit(1)
'''
told = {}
for name, code in codes.items():
    try:
        done = subprocess.run([sys.executable, "-c", wrapper], input=code.encode(), capture_output=True, timeout=10)
        raised = json.loads(done.stderr.splitlines()[-1]) if done.returncode == 1 and done.stderr else []
        told[name] = {"code": done.returncode, "raised": raised, "out": done.stdout.decode("utf-8", "replace").strip()}
    except subprocess.TimeoutExpired:
        told[name] = {"code": None, "raised": [], "out": "it hung"}
print()
print(json.dumps(told))
"""
