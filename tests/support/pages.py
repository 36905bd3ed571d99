"""A web site on loopback whose pages report events to the test."""

from __future__ import annotations

import itertools
import json
import ssl
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
_REPORT_SCRIPT = """<script>function report(value) {
  const request = new XMLHttpRequest(); request.open('POST', '/reports%s', false); request.send(JSON.stringify(value)) }
</script>"""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the site."""

    path: str
    query: str
    cookie: str
    body: bytes = b""
    authorization: str = ""


@dataclass(frozen=True, slots=True)
class WatchedPage:
    """A page whose scripts can call `report(value)`."""

    url: str
    reports: list[Any]
    """The reported values, in order."""

    def wait_for(self, *values: Any) -> None:
        """Wait until the page has reported each of these values."""
        wait_until(lambda: all(value in self.reports for value in values), what=f"{values} in {self.reports}")


class HeldResponse:
    """A page whose response waits until the test releases it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requested = threading.Event()
        self._released = threading.Event()

    def release(self) -> None:
        self._released.set()

    def answer(self, _: Request) -> str:
        self.requested.set()
        self._released.wait(60)
        return "<title>held</title>"


@dataclass(slots=True)
class Site:
    """A web site whose pages can be added while it runs."""

    port: int
    host: str = "127.0.0.1"
    scheme: str = "http"
    pages: dict[str, Answer] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    reports: dict[str, list[Any]] = field(default_factory=dict)
    """The values that pages have reported, by path."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def add(self, path: str, answer: Answer, headers: dict[str, str] | None = None, *, status: int = 200) -> str:
        """Add a page and return its URL. A `Location` header makes it a redirect."""
        self.pages[path] = answer
        self.headers[path] = headers or {}
        self.statuses[path] = 302 if "Location" in self.headers[path] else status
        return f"{self.origin}{path}"

    def watch(self, body: str, *, title: str = "watched") -> WatchedPage:
        """Add a page at a new path whose scripts can call `report(value)`."""
        path = f"/watched/{next(self.numbers)}"
        url = self.add(path, f"<!doctype html><title>{title}</title>{self.report_script(path)}{body}")
        return WatchedPage(url=url, reports=self.reports[path])

    def hold(self) -> HeldResponse:
        """Add a page at a new path that responds when the test releases it."""
        path = f"/held/{next(self.numbers)}"
        response = HeldResponse(f"{self.origin}{path}")
        self.add(path, response.answer)
        return response

    def report_script(self, path: str) -> str:
        """Return the script that defines `report`. The reported values are in `reports` under this path."""
        self.reports[path] = []
        return _REPORT_SCRIPT % path

    def answer(self, request: Request) -> str | bytes | None:
        if request.path.startswith("/reports/"):
            self.reports[request.path.removeprefix("/reports")].append(json.loads(request.body))
            return ""
        answer = self.pages.get(request.path, "<title>slow</title>" if request.path.startswith("/slow/") else None)
        return answer(request) if callable(answer) else answer


@contextmanager
def running_site(host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Serve until the end of the block, with `tls` over https. `/slow/60` responds after 60 seconds."""
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
                authorization=self.headers.get("Authorization", ""),
            )
            site.requests.append(request)
            if parts.path.startswith("/slow/"):
                stopped.wait(float(parts.path.rpartition("/")[2]))
            body = site.answer(request)
            content = body.encode() if isinstance(body, str) else (body or b"")
            headers = {"Content-Type": "text/html; charset=utf-8", **site.headers.get(parts.path, {})}
            self.send_response(404 if body is None else site.statuses.get(parts.path, 200))
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
    if tls is not None:
        # The handshake is part of the first read, in the thread of the connection.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    site = Site(port=server.server_address[1], host=host, scheme="http" if tls is None else "https")
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
