"""A web site on loopback whose pages report events to the test."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Answer = str | bytes | Callable[["Request"], "str | bytes"]

# The request is synchronous, so the report has arrived when the command that caused the event returns.
_TELL = """<script>function tell(what) {
  const report = new XMLHttpRequest(); report.open('POST', '/told%s', false); report.send(JSON.stringify(what)) }
</script>"""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the site."""

    path: str
    query: str
    cookie: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class WatchedPage:
    """A page whose scripts can call `tell(value)`."""

    url: str
    told: list[Any]
    """What the page told, in order."""

    def saw(self, *values: Any) -> None:
        """Waits until the page has told each of these."""
        wait_until(
            lambda: all(value in self.told for value in values), what=f"{values} told by the page, not {self.told},"
        )


@dataclass(slots=True)
class Site:
    """A web site whose pages can be added while it runs."""

    port: int
    host: str = "127.0.0.1"
    pages: dict[str, Answer] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    told: dict[str, list[Any]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    def add(self, path: str, answer: Answer, headers: dict[str, str] | None = None) -> str:
        """Add a page and return its URL. A `Location` header makes it a redirect."""
        self.pages[path] = answer
        self.headers[path] = headers or {}
        return f"{self.origin}{path}"

    def watch(self, body: str, *, title: str = "watched") -> WatchedPage:
        """Puts a page at a path of its own, whose scripts can `tell`."""
        path = f"/watched/{next(self.numbers)}"
        url = self.add(path, f"<!doctype html><title>{title}</title>{self.teller(path)}{body}")
        return WatchedPage(url=url, told=self.told[path])

    def teller(self, path: str) -> str:
        """The script that gives a page `tell`; what it tells is found in `told` under this path."""
        self.told[path] = []
        return _TELL % path

    def answer(self, request: Request) -> str | bytes | None:
        if request.path.startswith("/told/"):
            self.told[request.path.removeprefix("/told")].append(json.loads(request.body))
            return ""
        answer = self.pages.get(request.path, "<title>slow</title>" if request.path.startswith("/slow/") else None)
        return answer(request) if callable(answer) else answer


@contextmanager
def running_site(host: str = "127.0.0.1") -> Iterator[Site]:
    """Serve until the end of the block. `/slow/60` responds after 60 seconds."""
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            request = Request(
                path=parts.path,
                query=parts.query,
                cookie=self.headers.get("Cookie", ""),
                body=self.rfile.read(int(self.headers.get("Content-Length", 0))),
            )
            site.requests.append(request)
            if parts.path.startswith("/slow/"):
                stopped.wait(float(parts.path.rpartition("/")[2]))
            body = site.answer(request)
            content = body.encode() if isinstance(body, str) else (body or b"")
            headers = {"Content-Type": "text/html; charset=utf-8", **site.headers.get(parts.path, {})}
            found = 302 if "Location" in headers else 200
            self.send_response(found if body is not None else 404)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            return

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: object, client_address: object) -> None:
            return  # Connections of a killed browser fail.

    server = QuietServer((host, 0), Handler)
    site = Site(port=server.server_address[1], host=host)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()


def wait_until(condition: Callable[[], bool], *, seconds: float = 15, what: str = "the condition") -> None:
    """Poll a condition that has no event to wait for."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {seconds} s")
        time.sleep(0.02)
