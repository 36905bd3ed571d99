"""HTTP over a plain socket, for requests that no client library sends."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from dataclasses import dataclass
from typing import Any

CLOSED = 0
"""Status of a connection that was closed without a response."""
_QUIET_SECONDS = 0.4
_TIMEOUT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Parse a JSON body, or the last event of a stream."""
        text = self.body.decode()
        events = [line.partition(":")[2] for line in text.splitlines() if line.startswith("data:") and "{" in line]
        return json.loads(events[-1] if events else text)


NO_ANSWER = Answer(CLOSED, {}, b"")


def head(method: str, target: str, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def exchange(port: int, data: bytes, *, seconds: float = _TIMEOUT_SECONDS) -> list[Answer]:
    """Return all responses until the server closes, or sends nothing more after one."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        received = bytearray()
        deadline = time.monotonic() + seconds
        with contextlib.suppress(OSError):  # refused while writing; the response has the reason
            connection.sendall(data)
        while time.monotonic() < deadline:
            connection.settimeout(_QUIET_SECONDS if answers_in(bytes(received)) else deadline - time.monotonic())
            try:
                piece = connection.recv(65536)
            except OSError:
                break
            if not piece:
                return answers_in(bytes(received), ended=True)
            received += piece
        return answers_in(bytes(received))


def answers_in(data: bytes, *, ended: bool = False) -> list[Answer]:
    """Parse the complete responses in a stream of bytes. A response to HEAD is complete when the stream has ended."""
    found: list[Answer] = []
    while b"\r\n\r\n" in data:
        top, _, rest = data.partition(b"\r\n\r\n")
        status_line, *lines = top.decode("latin-1").split("\r\n")
        status = int(status_line.split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if status == 101:
            return [*found, Answer(status, headers, rest)]
        if "chunked" in headers.get("transfer-encoding", ""):
            body = _unchunked(rest)
            if body is None:
                break
            found.append(Answer(status, headers, body[0]))
            data = body[1]
            continue
        length = 0 if status < 200 else int(headers.get("content-length", len(rest)))
        if len(rest) < length and not ended:
            break
        if status >= 200:
            found.append(Answer(status, headers, rest[:length]))
        data = rest[length:]
    return found


def _unchunked(data: bytes) -> tuple[bytes, bytes] | None:
    body = b""
    while True:
        size, line, data = data.partition(b"\r\n")
        if not line or len(data) < int(size, 16) + 2:
            return None
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
        if length == 0:
            return body, data
