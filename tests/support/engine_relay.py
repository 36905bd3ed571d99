"""A proxy in front of a real engine that fails a step of its API on demand."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Fault = Literal["error", "cut", "garbage"]
_ANSWERS: dict[Fault, bytes] = {
    "error": b'HTTP/1.1 500 Bad\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{"message": "bad"}',
    "cut": b"",
    "garbage": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\nnonsense!",
}


class EngineRelay:
    """Forwards everything, except requests that match `failing`, which it answers with a fault."""

    def __init__(self, engine: str, path: Path) -> None:
        self._engine = engine.removeprefix("unix://")
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._links: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.address = f"unix://{path}"
        self.failing: re.Pattern[bytes] | None = None
        self.fault: Fault = "error"
        self.times = 1000
        threading.Thread(target=self._accept, daemon=True).start()

    def die(self) -> None:
        """Close all connections and the listener, as an engine that stops."""
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self._engine)
            self._links += [client, engine]
            thread = threading.Thread(target=self._serve, args=(client, engine), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket, engine: socket.socket) -> None:
        with client, engine:
            answers = threading.Thread(target=self._forward, args=(engine, client, False), daemon=True)
            answers.start()
            self._forward(client, engine, True)
            answers.join()

    def _forward(self, source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_request and self.failing and self.times > 0 and self.failing.match(data):
                    self.times -= 1
                    source.sendall(_ANSWERS[self.fault])
                    break
                sink.sendall(data)
        for link in (source, sink):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relaying(engine: str, directory: Path) -> Iterator[EngineRelay]:
    relay = EngineRelay(engine, directory / "relay.sock")
    try:
        yield relay
    finally:
        relay.die()
