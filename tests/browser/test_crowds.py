"""Many clients that send nothing, or one byte at a time: the server closes their connections and keeps serving."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from support.pages import Site
from support.server import Server

CLOSE_SECONDS = 25
"""The server waits 10 s for the head of a request. The rest is for a busy machine."""
HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"x" * 4000


@contextmanager
def connected_clients(port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), 5)) for _ in range(count)]


def closed_connections(clients: list[socket.socket], *, text: bytes = b"") -> int:
    """Count the connections that the server closes in time while each client sends one byte of the text at a time."""
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ, data=client)
        deadline, sent = time.monotonic() + CLOSE_SECONDS, 0
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(timeout=0.2):
                if not _is_open(key.data):
                    selector.unregister(key.fileobj)
            for key in list(selector.get_map().values()):
                if sent < len(text) and not _can_send(key.data, text[sent : sent + 1]):
                    selector.unregister(key.fileobj)
            sent += 1
        return len(clients) - len(selector.get_map())


def _is_open(client: socket.socket) -> bool:
    try:
        return bool(client.recv(4096))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _can_send(client: socket.socket, byte: bytes) -> bool:
    try:
        return client.send(byte) == 1
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_connections_of_silent_clients_are_closed_and_calls_go_on(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    with connected_clients(own_server.port, 200) as clients:
        session.ok("open", site.watch("<p id=p>here</p>").url)
        assert session.ok("get", "text", "#p")["text"] == "here"
        assert closed_connections(clients) == len(clients)
    session.ok("snapshot")


def test_connections_of_slow_clients_are_closed_and_calls_go_on(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    with connected_clients(own_server.port, 50) as clients:
        session.ok("open", site.watch("<p id=p>here</p>").url)
        assert closed_connections(clients, text=HEAD) == len(clients)
    session.ok("snapshot")


def test_calls_work_after_more_connections_than_the_server_allows(own_server: Server, site: Site) -> None:
    with connected_clients(own_server.port, 400) as clients:
        assert closed_connections(clients) == len(clients)
    own_server.session("s").ok("open", site.watch("").url)
