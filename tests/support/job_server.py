"""A real `browser-shell serve --profile write` over a real container engine, and a client for it."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from browser_shell.commands.cli import run
from support.server import Server, running_server

ROOT = Path(__file__).parents[2]
PROJECTS = ROOT / "tests" / "data" / "projects"
_BUILD_SECONDS = 900
_ROW = "{{.ID}} {{.Labels}}"
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


@cache
def default_engine_address(engine: str) -> str:
    """Return the address; start the engine when none answers. Tests fail, not skip, without an engine."""
    return _last_line("scripts/engine", engine)


@cache
def engine_address(engine: str) -> str:
    """Return an address that a server without root can use."""
    address = default_engine_address(engine)
    # The server drops root, and then has no access to Podman's default socket.
    return _podman_for_account(address) if engine == "podman" and os.geteuid() == 0 else address


def _podman_for_account(address: str) -> str:
    """Open a second socket of the same Podman, with the group that docs/how-to/test-jobs.md recommends."""
    directory = Path(tempfile.mkdtemp(prefix="bsp-", dir="/tmp"))
    directory.chmod(0o711)
    configuration = Path(address.removeprefix("unix://")).with_name("containers.conf")
    extra = {"CONTAINERS_CONF": str(configuration)} if configuration.exists() else {}
    socket = directory / "podman.sock"
    service = subprocess.Popen(
        ["podman", "system", "service", "--time=0", f"unix://{socket}"], env={**_ENVIRONMENT, **extra}
    )
    atexit.register(_end, service, directory)
    until(socket.exists)
    shutil.chown(socket, group="browser-shell")
    socket.chmod(0o660)
    return f"unix://{socket}"


def _end(service: subprocess.Popen[bytes], directory: Path) -> None:
    service.terminate()
    service.wait(10)
    shutil.rmtree(directory, ignore_errors=True)


@cache
def image_id(engine: str) -> str:
    """Return the id of this checkout's job image; build it when it is missing."""
    engine_address(engine)
    return _last_line("scripts/jobs-image", env={"ENGINE": engine})


def _last_line(*argv: str, env: Mapping[str, str] | None = None) -> str:
    result = subprocess.run(
        argv,
        cwd=ROOT,
        env={**_ENVIRONMENT, **(env or {})},
        stdout=subprocess.PIPE,
        text=True,
        timeout=_BUILD_SECONDS,
        check=True,
    )
    return result.stdout.strip().splitlines()[-1]


@dataclass(frozen=True, slots=True)
class JobServer:
    """A running job server and its workspace."""

    server: Server
    workspace: Path
    engine: str

    @property
    def jobs(self) -> Path:
        return self.server.state / "jobs"

    @property
    def artifacts(self) -> Path:
        return self.jobs / "artifacts"

    @property
    def log(self) -> Path:
        return self.jobs / "audit.jsonl"

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the whole JSON-RPC reply."""
        reply: dict[str, Any] = self.server.rpc(call_message(tool, **arguments), seconds=300)
        return reply

    def run(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a run that ended by itself."""
        reply = self.call(tool, **arguments)
        assert "result" in reply, reply
        result = reply["result"]
        answer: dict[str, Any] = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == answer
        assert not result.get("isError")
        return answer

    def evidence(self, run_id: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.artifacts / run_id / "evidence.json").read_bytes())
        return document

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_bytes().splitlines()]

    def kinds(self, run_id: str) -> list[str]:
        return [record["kind"] for record in self.records() if record.get("call_id") == run_id]

    def containers(self) -> list[str]:
        """List the ids of the containers whose label names a run of this server."""
        run_ids = {path.name for path in self.artifacts.iterdir()} if self.artifacts.exists() else set()
        listed = ask_engine(
            self.engine, "ps", "-a", "--no-trunc", "--filter", "label=browser-shell.run", "--format", _ROW
        )
        rows = [line.split(" ", 1) for line in listed.splitlines()]
        return [container for container, labels in rows if any(run_id in labels for run_id in run_ids)]


def call_message(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def ask_engine(engine: str, *arguments: str) -> str:
    address = engine_address(engine)
    client = ["docker", "--host", address] if engine == "docker" else ["podman", "--remote", "--url", address]
    return subprocess.run([*client, *arguments], stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout


@contextmanager
def job_server(
    engine: str = "docker", *, policy: Mapping[str, Any] | None = None, options: Sequence[str] = ()
) -> Iterator[JobServer]:
    """Start a server over a world-readable copy of the sample projects."""
    directory = Path(tempfile.mkdtemp(prefix="bsw-", dir="/tmp"))
    directory.chmod(0o711)
    workspace = directory / "workspace"
    shutil.copytree(PROJECTS, workspace)
    sections = dict(policy or {})
    sections["sandbox"] = {"image": image_id(engine), "engine": engine, **sections.get("sandbox", {})}
    env = {"BROWSER_SHELL_WORKSPACE": str(workspace), "BROWSER_SHELL_ENGINE": engine_address(engine)}
    try:
        with running_server(sections, env=env, options=["--profile", "write", *options]) as server:
            yield JobServer(server, workspace, engine)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Verified:
    """Exit code and output of `browser-shell evidence verify`."""

    returncode: int
    stdout: str


def verify(jobs: Path, *options: str) -> Verified:
    """Verify the jobs' state directory or a copy of it."""
    paths = ["--artifacts", str(jobs / "artifacts"), "--audit", str(jobs / "audit.jsonl")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = run(["evidence", "verify", *paths, *options])
    return Verified(code, printed.getvalue())


def until(holds: Any, *, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.05)
