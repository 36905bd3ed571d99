"""A real Redis for tests, on a Unix socket and a free loopback port."""

from __future__ import annotations

import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis

PASSWORD = "redis-s3cret-pass"
_READY_SECONDS = 10


@dataclass
class RedisServer:
    """A Redis process that can be stopped, started and suspended."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        return f"unix://:{PASSWORD}@{self.directory}/redis.sock?db=0"

    def ask(self, *command: str) -> Any:
        with Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(10)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Suspend the process: it accepts connections and does not answer."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def start(self) -> None:
        self.process = _start(self.directory, self.port)


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    with tempfile.TemporaryDirectory(prefix="bsh-redis-", dir="/tmp") as folder:
        directory, port = Path(folder), _free_port()
        server = RedisServer(directory, port, _start(directory, port))
        try:
            yield server
        finally:
            server.stop()


def _start(directory: Path, port: int) -> subprocess.Popen[bytes]:
    options = {
        "bind": "127.0.0.1",
        "port": str(port),
        "unixsocket": str(directory / "redis.sock"),
        "unixsocketperm": "700",
        "requirepass": PASSWORD,
        "save": "",
        "appendonly": "no",
        "dir": str(directory),
        # A check of the kernel that fails in an emulator and prevents the start.
        "ignore-warnings": "ARM64-COW-BUG",
    }
    arguments = [argument for name, value in options.items() for argument in (f"--{name}", value)]
    process = subprocess.Popen(["/usr/bin/redis-server", *arguments], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process
        except OSError:
            time.sleep(0.02)
    process.kill()
    raise AssertionError("redis-server did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
