"""A real `browser-shell serve` process and a minimal client for it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Word = str | int | float | bool
"""An item of an argv."""

_READY_SECONDS = 60
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")
_TOKEN = re.compile(r"^ +token +([\w-]+\.[\w-]+\.[\w-]+)$")
_LAST_LINE = "Ctrl-C"
UNHURRIED = {
    "calls_per_minute": 100_000,
    "calls_per_day": 10_000_000,
    "concurrent_calls": 1_000,
    "budget": {"max_retries": 10_000, "elapsed_seconds": 86_400},
}
"""Limits above the call rate of tests. Tests of limits pass their own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one tool call."""

    exit_code: int
    stdout: str
    stderr: str
    is_error: bool
    meta: dict[str, Any]
    attachments: list[tuple[str, bytes]]
    seconds: float

    @property
    def data(self) -> Any:
        return json.loads(self.stdout)


@dataclass(slots=True)
class Server:
    """A running server."""

    process: subprocess.Popen[str]
    runtime: Path
    state: Path
    env: dict[str, str]
    argv: list[str]
    lines: list[str] = field(default_factory=list)
    port: int = 0
    token: str = ""
    """Token that the server printed; '' for a server with a configured key or without authentication."""
    reader: threading.Thread = field(default_factory=threading.Thread)

    def session(self, session_id: str = "s1") -> Session:
        return Session(server=self, session_id=session_id)

    @property
    def devtools_directory(self) -> Path:
        """Return the runtime directory of this server, which holds its lock."""
        return next(path.parent for path in self.runtime.glob("*/lock"))

    @property
    def devtools_port(self) -> int:
        return int(self.devtools_directory.name)

    def mark(self, name: str) -> int:
        """Return the pid of a supervised process."""
        return int((self.devtools_directory / "identities" / name).read_text().split()[0])

    def daemons(self) -> dict[str, int]:
        """Return the pids of the driver's daemons by internal session name."""
        sockets = self.devtools_directory / "s"
        return {path.stem: int(path.read_text()) for path in sockets.glob("*.pid")}

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def rpc(self, message: Mapping[str, Any], *, seconds: float = 130) -> Any:
        """Send one JSON-RPC request without an MCP session."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(
                "POST",
                "/mcp",
                json.dumps(message),
                {
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    **self.authorization,
                },
            )
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        events = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
        return json.loads(events[-1] if events else text)

    def stop(self, number: signal.Signals = signal.SIGINT, *, seconds: float = 15) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        exit_code = self.process.wait(seconds)
        if self.reader.ident is not None:
            self.reader.join(seconds)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return exit_code


@dataclass(frozen=True, slots=True)
class Session:
    """Calls of one session."""

    server: Server
    session_id: str

    def run(self, *argv: Word, then: Sequence[Sequence[Word]] | None = None, timeout: int = 30) -> Outcome:
        """Run a command, and after it the steps of `then` in the same call."""
        started_at = time.monotonic()
        arguments: dict[str, Any] = {"session_id": self.session_id, "argv": list(argv), "timeout_sec": timeout}
        if then is not None:
            arguments["then"] = [list(step) for step in then]
        reply = self.server.rpc(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "browser-shell", "arguments": arguments},
            }
        )
        result = reply["result"]
        content = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == content
        return Outcome(
            exit_code=content["exit_code"],
            stdout=content["stdout"],
            stderr=content["stderr"],
            is_error=result.get("isError", False),
            meta=result.get("_meta") or {},
            attachments=[_attachment(block) for block in result["content"][1:]],
            seconds=time.monotonic() - started_at,
        )

    def ok(self, *argv: Word, then: Sequence[Sequence[Word]] | None = None, timeout: int = 30) -> Any:
        """Run a command that must succeed; return its data, or a list with the data of all steps."""
        outcome = self.run(*argv, then=then, timeout=timeout)
        assert outcome.exit_code == 0, f"{argv}: {outcome.stderr}"
        assert not outcome.is_error
        return outcome.data


def _attachment(block: dict[str, Any]) -> tuple[str, bytes]:
    if block["type"] == "image":
        return block["mimeType"], base64.b64decode(block["data"])
    return block["resource"]["mimeType"], base64.b64decode(block["resource"]["blob"])


@contextmanager
def running_server(
    policy: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    runtime: Path | None = None,
    wrapper: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Iterator[Server]:
    """Start a server on free ports; stop it and its child processes at the end."""
    directory = Path(tempfile.mkdtemp(prefix="bsh-", dir="/tmp"))
    directory.chmod(0o711)
    policy_file = directory / "policy.json"
    policy_file.write_text(json.dumps({"limits": UNHURRIED, **policy}))
    settings = {
        "PATH": "/usr/bin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "BROWSER_SHELL_POLICY": str(policy_file),
        "BROWSER_SHELL_RUNTIME_DIR": str(runtime or directory / "r"),
        "BROWSER_SHELL_STATE_DIR": str(directory / "state"),
        "BROWSER_REMOTE_DEBUGGING_PORT": "0",
        "PUBLIC_PORT": "0",
        "BROWSER_SHELL_REQUESTS_PER_SECOND": "10000",
        **(env or {}),
    }
    argv = [*wrapper, str(Path(sys.executable).with_name("browser-shell")), "serve", *options]
    server = Server(
        process=start_process(argv, settings),
        runtime=Path(settings["BROWSER_SHELL_RUNTIME_DIR"]),
        state=directory / "state",
        env=settings,
        argv=argv,
    )
    try:
        wait_ready(server)
        yield server
    finally:
        server.stop(signal.SIGINT)
        shutil.rmtree(directory, ignore_errors=True)


def start_process(argv: list[str], env: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_ready(server: Server) -> None:
    """Read the server's output until it is ready, then continue in the background."""
    ready = threading.Event()

    def read() -> None:
        for line in server.process.stdout or ():
            server.lines.append(line)
            if match := _ADDRESS.search(line):
                server.port = int(match[1])
            if match := _TOKEN.search(line):
                server.token = match[1]
            if _LAST_LINE in line:
                ready.set()
        ready.set()

    server.port = 0
    server.reader = threading.Thread(target=read, daemon=True)
    server.reader.start()
    assert ready.wait(_READY_SECONDS), "the server did not become ready"
    assert server.port, "the server ended:\n" + "".join(server.lines)
