"""Servers that accept a connection and then do not behave as HTTP servers do."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Behaviour = Callable[[socket.socket], None]


def close_silently(client: socket.socket) -> None:
    client.recv(65536)


def reset(client: socket.socket) -> None:
    client.recv(65536)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def speak_nonsense(client: socket.socket) -> None:
    client.recv(65536)
    client.sendall(b"220 mail.example ready\r\n\r\n")


@contextmanager
def faulty_server(behaviour: Behaviour) -> Iterator[int]:
    """Serve each connection with a behaviour, then close it. Yields the port on 127.0.0.1."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    behaviour(client)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def closed_port() -> int:
    """Return a port on 127.0.0.1 that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
