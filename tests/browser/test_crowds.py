"""Clients that come in numbers, say nothing, or speak letter by letter: calls go on, and the crowd is sent away."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from support.pages import Site
from support.server import Server

PATIENCE_SECONDS = 25
"""The server waits 10 s for the head of a request; the rest is for a busy machine."""
HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"x" * 4000


@contextmanager
def a_crowd(port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as held:
        yield [held.enter_context(socket.create_connection(("127.0.0.1", port), 5)) for _ in range(count)]


def sent_away(crowd: list[socket.socket], *, letters: bytes = b"") -> int:
    """How many connections the server has ended in time, while each of them goes on letter by letter."""
    waiting = selectors.DefaultSelector()
    for one in crowd:
        one.setblocking(False)
        waiting.register(one, selectors.EVENT_READ, data=one)
    deadline, said = time.monotonic() + PATIENCE_SECONDS, 0
    while waiting.get_map() and time.monotonic() < deadline:
        for key, _ in waiting.select(timeout=0.2):
            if not _still_open(key.data):
                waiting.unregister(key.fileobj)
        for key in list(waiting.get_map().values()):
            if said < len(letters) and not _said(key.data, letters[said : said + 1]):
                waiting.unregister(key.fileobj)
        said += 1
    return len(crowd) - len(waiting.get_map())


def _still_open(one: socket.socket) -> bool:
    try:
        return bool(one.recv(4096))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _said(one: socket.socket, letter: bytes) -> bool:
    try:
        return one.send(letter) == 1
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_two_hundred_silent_clients_are_sent_away_and_calls_go_on(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    with a_crowd(own_server.port, 200) as crowd:
        session.ok("open", site.watch("<p id=p>here</p>").url)
        assert session.ok("get", "text", "#p")["text"] == "here"
        assert sent_away(crowd) == len(crowd)
    session.ok("snapshot")


def test_clients_that_speak_letter_by_letter_are_sent_away_and_calls_go_on(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    with a_crowd(own_server.port, 50) as crowd:
        session.ok("open", site.watch("<p id=p>here</p>").url)
        assert sent_away(crowd, letters=HEAD) == len(crowd)
    session.ok("snapshot")


def test_after_more_clients_than_there_is_room_for_calls_work_again(own_server: Server, site: Site) -> None:
    with a_crowd(own_server.port, 400) as crowd:
        assert sent_away(crowd) == len(crowd)
    own_server.session("s").ok("open", site.watch("").url)
