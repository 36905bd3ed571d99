"""Listeners that must not be reached, and the connections in the audit log of a server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from support.server import Server

_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n"
    b"Content-Length: 2\r\nConnection: close\r\n\r\nhi"
)


@dataclass
class Canary:
    """Counts connections. It sends a response, so that a browser that connects does not give up."""

    host: str
    port: int
    connections: int = 0
    first_lines: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        return self.origin.removeprefix("http://")

    def hits(self, text: str) -> int:
        return sum(text in line for line in self.first_lines)

    def _respond(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(5)
            self.first_lines.append(client.recv(65536).partition(b"\r\n")[0].decode(errors="replace"))
            client.sendall(_ANSWER)

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                self.connections += 1
                threading.Thread(target=self._respond, args=(client,), daemon=True).start()


@contextmanager
def running_canary(host: str = "127.0.0.1", port: int = 0) -> Iterator[Canary]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, port))
        listener.listen(128)
        canary = Canary(host=host, port=listener.getsockname()[1])
        thread = threading.Thread(target=canary._serve, args=(listener,), daemon=True)
        thread.start()
        yield canary
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _record(line: str) -> dict[str, Any]:
    """Parse a line; empty for an incomplete one, which is being written or was cut by a full disk."""
    with suppress(ValueError):
        record = json.loads(line)
        return record if isinstance(record, dict) else {}
    return {}


@dataclass(frozen=True)
class AuditReader:
    """The audit log of a running server, without its first records."""

    server: Server
    skipped: int = 0

    def _all(self) -> list[dict[str, Any]]:
        (path,) = self.server.state.glob("*/audit.jsonl")
        return [record for line in path.read_text(encoding="utf-8").splitlines() if (record := _record(line))]

    def from_now(self) -> AuditReader:
        return AuditReader(self.server, len(self._all()))

    def records(self) -> list[dict[str, Any]]:
        return self._all()[self.skipped :]

    def refused(self) -> dict[str, str]:
        """Return the rule by host and port of each denied connection."""
        return {
            line.get("host", ""): line["rule_id"] for line in self.records() if line["kind"] == "MCP_NETWORK_BLOCKED"
        }

    def dialled(self) -> set[str]:
        """Return host and port of each allowed connection."""
        return {line["host"] for line in self.records() if line["kind"] == "EGRESS_CONNECT"}
