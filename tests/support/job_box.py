"""Runs hostile and ordinary code in real job containers and inspects the result."""

from __future__ import annotations

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
from browser_shell.server.common import SystemClock
from support.job_server import default_engine_address

MIB = 1024 * 1024
IMAGES = {"docker": "browser-shell/jobs:latest", "podman": "localhost/browser-shell/jobs:latest"}
QUICK = ContainerLimits(timeout_seconds=30)
_ENGINE_HELPER_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that has ended."""

    report: ContainerReport
    directory: Path

    @property
    def log(self) -> bytes:
        return (self.directory / "log").read_bytes()

    @property
    def output(self) -> Path:
        return self.directory / "output"

    @property
    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*"))


@dataclass(kw_only=True)
class JobBox:
    """An engine with the job image, and the lock of a server."""

    name: str
    directory: Path
    address: str = ""
    lock: ServerLock = field(init=False)
    containers: DisposableContainers = field(init=False)
    image_id: str = ""

    def __post_init__(self) -> None:
        self.address = self.address or default_engine_address(self.name)
        self.lock = ServerLock(self.directory / "servers", uuid.uuid4().hex)
        self.lock.acquire()
        self.containers = DisposableContainers(address=self.address, lock=self.lock, clock=SystemClock())
        if not self.image_id:
            self.image_id = anyio.run(self.containers.image_id, IMAGES[self.name])

    def order(
        self, argv: Iterable[str], *, files: dict[str, str] | None = None, limits: ContainerLimits = QUICK
    ) -> ContainerOrder:
        run_id = uuid.uuid4().hex
        directory = self.directory / run_id
        directory.mkdir(mode=0o700, parents=True)
        workspace = directory / "workspace"
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
            output=directory / "output",
            log_path=directory / "log",
            limits=limits,
        )

    async def finish(
        self,
        order: ContainerOrder,
        *,
        on_output: Callable[[bytes], None] = lambda _: None,
        on_created: Callable[[str], None] = lambda _: None,
    ) -> Finished:
        async def before_start(container_id: str) -> None:
            on_created(container_id)

        report = await self.containers.run(order, on_output=on_output, before_start=before_start)
        return Finished(report=report, directory=order.output.parent)

    async def sweep(self) -> list[str]:
        async def before_remove(run_id: str, container_id: str) -> None:
            assert self.client("inspect", "--format", "{{.Id}}", container_id).strip() == container_id

        return await self.containers.sweep(before_remove)

    def run(self, *argv: str, files: dict[str, str] | None = None, limits: ContainerLimits = QUICK) -> Finished:
        return anyio.run(self.finish, self.order(argv, files=files, limits=limits))

    def python(self, code: str, *, limits: ContainerLimits = QUICK, files: dict[str, str] | None = None) -> Finished:
        return self.run("python", "/work/program.py", files={"program.py": code, **(files or {})}, limits=limits)

    def outcomes(self, codes: dict[str, str]) -> dict[str, dict[str, Any]]:
        """Run each piece of code in its own process, all in one container; return their outcomes."""
        files = {"codes.json": json.dumps(codes), "program.py": _RUN_ALL}
        finished = self.run("python", "/work/program.py", files=files, limits=ContainerLimits(timeout_seconds=60))
        assert finished.report.exit_code == 0, finished.log[-2000:]
        outcomes: dict[str, dict[str, Any]] = json.loads(finished.log.splitlines()[-1])
        return outcomes

    def labelled(self, run_id: str | None = None) -> list[str]:
        """List the ids of the containers of this server, or of one run."""
        label = f"browser-shell.run={run_id}" if run_id else f"browser-shell.server={self.lock.server_id}"
        listed = self.client("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={label}")
        return listed.split()

    def client(self, *arguments: str) -> str:
        """Run the engine's own command line client, independent of the code under test."""
        program = ["docker", "--host"] if self.name == "docker" else ["podman", "--remote", "--url"]
        result = subprocess.run(
            [*program, self.address, *arguments], capture_output=True, text=True, timeout=60, check=True
        )
        return result.stdout

    def close(self) -> None:
        self.lock.release()
        shutil.rmtree(self.directory, ignore_errors=True)


def processes_mentioning(text: str) -> list[int]:
    """List host processes whose cgroup or command line contains the text."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                facts = (process / "cgroup").read_text("utf-8") + (process / "cmdline").read_text("utf-8", "replace")
            except OSError:
                continue
            if text in facts:
                found.append(int(process.name))
    return found


def remaining_processes(text: str) -> list[int]:
    """List processes that do not end. Helpers of the engine end shortly after their container."""
    deadline = time.monotonic() + _ENGINE_HELPER_SECONDS
    while (found := processes_mentioning(text)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


_RUN_ALL = """
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
outcomes = {}
for name, code in codes.items():
    try:
        done = subprocess.run([sys.executable, "-c", wrapper], input=code.encode(), capture_output=True, timeout=10)
        raised = json.loads(done.stderr.splitlines()[-1]) if done.returncode == 1 and done.stderr else []
        out = done.stdout.decode("utf-8", "replace").strip()
        outcomes[name] = {"code": done.returncode, "raised": raised, "out": out}
    except subprocess.TimeoutExpired:
        outcomes[name] = {"code": None, "raised": [], "out": "it hung"}
print()
print(json.dumps(outcomes))
"""
