"""Thin clients for MCP over HTTP and stdio and for CDP. An SDK would add its own milliseconds."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import struct
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
CALL_SECONDS = 40.0
_CLIENT = {"name": "browser-shell-bench", "version": "1"}
_MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _CLIENT,
}
_INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}


class WireError(Exception):
    """No reply in time, or an error as the reply."""


def _result(message: Mapping[str, Any]) -> Any:
    if "error" in message:
        raise WireError(json.dumps(message["error"])[:400])
    return message["result"]


class HttpMcp:
    """MCP over Streamable HTTP on one connection, in the era "modern" (2026-07-28) or "legacy" (2025-11-25)."""

    def __init__(self, port: int, era: str, token: str = "") -> None:
        self._era = era
        self._socket = socket.create_connection(("127.0.0.1", port), CALL_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", buffering=1 << 18)
        self._number = 0
        self._chunked = False
        self._head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")
        )
        if era == "modern":
            self._head += f"MCP-Protocol-Version: {MODERN}\r\n"
        else:
            self._initialize()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its parsed result. `finish` reads the rest of the event stream."""
        self._number += 1
        extra = ""
        if self._era == "modern":
            params = {**params, "_meta": _MODERN_META}
            name = f"Mcp-Name: {params['name']}\r\n" if "name" in params else ""
            extra = f"Mcp-Method: {method}\r\n{name}"
        self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}, extra)
        return _result(self._read())

    def finish(self) -> None:
        """Read the rest of the event stream, so that the connection can be used again. Not measured."""
        while self._chunked and self._read_chunk():
            pass
        self._chunked = False

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _initialize(self) -> None:
        self.call("initialize", _INITIALIZE)
        self.finish()
        self._head += f"MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {self._headers['mcp-session-id']}\r\n"
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, "")
        self._read_head()
        self._file.read(int(self._headers.get("content-length", 0)))

    def _post(self, message: dict[str, Any], extra: str) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        self._socket.sendall(f"{self._head}{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _read_head(self) -> None:
        status = self._file.readline()
        self._headers: dict[str, str] = {}
        while (line := self._file.readline()) not in (b"\r\n", b""):
            key, _, value = line.decode("latin-1").partition(":")
            self._headers[key.strip().lower()] = value.strip()
        self._chunked = self._headers.get("transfer-encoding") == "chunked"
        if b" 20" not in status:
            raise WireError(f"{status!r} {self._file.read(int(self._headers.get('content-length', 0)))[:300]!r}")

    def _read(self) -> Any:
        self._read_head()
        if not self._chunked:
            return json.loads(self._file.read(int(self._headers["content-length"])))
        text = b""
        while chunk := self._read_chunk():
            text += chunk.replace(b"\r\n", b"\n")
            while b"\n\n" in text:
                event, _, text = text.partition(b"\n\n")
                data = b"".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
                message = json.loads(data) if data else {}
                if message.get("id") == self._number:
                    return message
        raise WireError("the event stream ended without a reply")

    def _read_chunk(self) -> bytes:
        size = int(self._file.readline(), 16)
        data: bytes = self._file.read(size)
        self._file.readline()
        return data


class StdioMcp:
    """MCP over the standard streams of a child process, from its start to its end."""

    def __init__(
        self, argv: list[str], *, env: Mapping[str, str], cwd: Path, user: int | None, group: int | None
    ) -> None:
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=cwd,
            user=user,
            group=group,
            extra_groups=None if user is None else (),
            bufsize=0,
        )
        self._number = 0
        self._buffer = bytearray()
        self.call("initialize", _INITIALIZE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        deadline = time.monotonic() + CALL_SECONDS
        while True:
            message = json.loads(self._read_line(deadline))
            if message.get("id") == self._number and "method" not in message:
                return _result(message)

    def close(self) -> None:
        _pipe(self.process.stdin).close()
        for stop in (None, self.process.terminate, self.process.kill):
            if stop is not None:
                stop()
            try:
                self.process.wait(3)
                break
            except subprocess.TimeoutExpired:
                continue
        _pipe(self.process.stdout).close()

    def _send(self, message: dict[str, Any]) -> None:
        _pipe(self.process.stdin).write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _read_line(self, deadline: float) -> bytes:
        out = _pipe(self.process.stdout).fileno()
        while b"\n" not in self._buffer:
            if not select.select([out], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise WireError("no reply in time")
            part = os.read(out, 1 << 20)
            if not part:
                raise WireError("the server closed its output")
            self._buffer += part
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line


def _pipe(stream: Any) -> BinaryIO:
    if stream is None:
        raise WireError("the program has no pipes")
    return stream  # type: ignore[no-any-return]


class Cdp:
    """The Chrome DevTools Protocol over one WebSocket to the browser, with flat sessions."""

    def __init__(self, port: int) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/version", timeout=10) as response:
            url = urlsplit(json.load(response)["webSocketDebuggerUrl"])
        self._socket = socket.create_connection(("127.0.0.1", port), CALL_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._file = self._socket.makefile("rb", buffering=1 << 18)
        if b" 101 " not in self._file.readline():
            raise WireError("the WebSocket was refused")
        while self._file.readline() not in (b"\r\n", b""):
            pass
        self._number = 0
        self._replies: dict[int, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self.session = ""

    def open_window(self) -> str:
        """Create a browser context with a window, as this server does for a session. Return the target id."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context, newWindow=True)
        return str(target["targetId"])

    def attach(self, target: str) -> None:
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.take(self.post(method, **params))

    def post(self, method: str, **params: Any) -> int:
        """Send a command without waiting for its reply. Return its id for `take`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        payload = json.dumps(message).encode()
        length = len(payload)
        head = struct.pack(">BB", 0x81, 0x80 | length) if length < 126 else struct.pack(">BBH", 0x81, 0xFE, length)
        # A mask of zeros is valid (RFC 6455 §5.3) and leaves the payload unchanged.
        self._socket.sendall(head + b"\0\0\0\0" + payload)
        return self._number

    def take(self, number: int) -> dict[str, Any]:
        while number not in self._replies:
            self._receive_message()
        result: dict[str, Any] = _result(self._replies.pop(number))
        return result

    def clear_events(self) -> None:
        self._events.clear()

    def wait_event(self, method: str) -> None:
        while not any(event["method"] == method for event in self._events):
            self._receive_message()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _receive_message(self) -> None:
        message = json.loads(self._read_frames())
        if "id" in message:
            self._replies[message["id"]] = message
        else:
            self._events.append(message)

    def _read_frames(self) -> bytes:
        message = b""
        while True:
            first, second = self._file.read(2)
            length = second & 0x7F
            if length > 125:
                length = int.from_bytes(self._file.read(2 if length == 126 else 8), "big")
            message += bytes(self._file.read(length))
            if first & 0x0F == 0x8:
                raise WireError("the WebSocket was closed")
            if first & 0x80:
                return message
