"""Measures the cost of the jail and the egress proxy: `python -m bench.egress`.

One Chromium runs behind the jail and the proxy of the product, another with the same flags and without both. They take
turns with pages of the same local site, which measure themselves. There are two comparisons:

- `proxy`: both browsers are driven by the same few DevTools calls;
- `session`: both are driven by agent-browser, one through the tool of the product, the other by the bare CLI.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal

from bench.boxes import Setup, acting_as, chromium_without_proxy, free_port
from bench.subjects import DriverCli
from bench.wire import Cdp
from browser_shell.browser.chromium.display import running_display
from browser_shell.browser.chromium.jail import PROXY_PORT
from browser_shell.browser.chromium.process import (
    NO_BYPASS,
    ChromiumSettings,
)
from browser_shell.browser.chromium.runtime_dirs import claimed_layout
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.core.decisions import Requester
from browser_shell.process.accounts import Account, account_to_drop_to, make_private_directory
from browser_shell.settings import Settings, read_settings

Reports: TypeAlias = dict[str, list[dict[str, float]]]

MIB = 1024 * 1024
FILE_BYTES = 200 * 1000 * 1000
RESOURCES = 100
MIN_THROUGHPUT_RATIO, MAX_LOAD_RATIO = 0.5, 1.25
_REPORT_SECONDS = 120
_REPORT = "fetch('/report', {method: 'POST', body: JSON.stringify(value)})"
_DOWNLOAD_PAGE = """<!doctype html><title>download</title><script>(async () => {
  const began = performance.now(); let bytes = 0
  const reader = (await fetch('/file')).body.getReader()
  for (;;) { const {done, value} = await reader.read(); if (done) break; bytes += value.length }
  const value = {bytes, ms: performance.now() - began}; REPORT })()</script>""".replace("REPORT", _REPORT)


def _load_page() -> str:
    tags = []
    for number in range(RESOURCES):
        match number % 3:
            case 0:
                tags.append(f"<script src=/r/{number}.js async></script>")
            case 1:
                tags.append(f"<link rel=stylesheet href=/r/{number}.css>")
            case _:
                tags.append(f"<img src=/r/{number}.svg>")
    measure = (
        "addEventListener('load', () => setTimeout(() => {"
        "const value = {ms: performance.getEntriesByType('navigation')[0].loadEventEnd}; " + _REPORT + " }, 0))"
    )
    return f"<!doctype html><title>load</title><script>{measure}</script>{''.join(tags)}"


_BODIES = {
    "js": ("text/javascript", b"/*" + b"x" * 4000 + b"*/"),
    "css": ("text/css", b"/*" + b"x" * 4000 + b"*/"),
    "svg": (
        "image/svg+xml",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'><!--" + b"x" * 4000 + b"--></svg>",
    ),
}


def _serve_site(parent: Connection, file: str) -> None:
    """Serve the site. It has a process of its own, so that its work does not slow down the benchmark."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path == "/file":
                self._head("application/octet-stream", FILE_BYTES)
                self.wfile.flush()
                with Path(file).open("rb") as content:
                    self.connection.sendfile(content)
                return
            pages = {"/download": _DOWNLOAD_PAGE, "/load": _load_page()}
            if self.path in pages:
                kind, body = "text/html", pages[self.path].encode()
            else:
                kind, body = _BODIES.get(self.path.rpartition(".")[2], ("text/plain", b"nothing"))
            self._head(kind, len(body))
            self.wfile.write(body)

        def do_POST(self) -> None:
            parent.send(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._head("text/plain", 0)

        def _head(self, kind: str, length: int) -> None:
            self.send_response(200)
            for name, value in (("Content-Type", kind), ("Content-Length", str(length)), ("Cache-Control", "no-store")):
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    with Server(("127.0.0.1", 0), Handler) as server:
        parent.send(server.server_address[1])
        server.serve_forever()


class Site:
    """The local site, seen from the benchmark."""

    def __init__(self, port: int, reports: Connection) -> None:
        self.port, self._reports = port, reports

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def report(self) -> dict[str, float]:
        if not self._reports.poll(_REPORT_SECONDS):
            raise TimeoutError("the page reported nothing")
        found: dict[str, float] = self._reports.recv()
        return found


@contextmanager
def running_site() -> Iterator[Site]:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        for _ in range(FILE_BYTES // MIB + 1):
            file.write(os.urandom(MIB))
        file.truncate(FILE_BYTES)
        file.flush()
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_serve_site, args=(theirs, file.name), daemon=True
        )
        process.start()
        try:
            yield Site(int(ours.recv()), ours)
        finally:
            process.kill()
            process.join()


@asynccontextmanager
async def direct_chromium(
    settings: Settings, account: Account | None, folder: Path
) -> AsyncIterator[dict[str, Callable[[str], object]]]:
    """Run the same browser without a jail and a proxy. Yield functions that open a URL, by DevTools and by driver."""
    port, width, height = free_port(), settings.display_width, settings.display_height
    with claimed_layout(folder / "direct", port, account) as layout:
        chromium = ChromiumSettings(
            program=settings.chromium,
            layout=layout,
            port=port,
            width=width,
            height=height,
            proxy_port=0,
            timezone=settings.timezone,
        )
        async with (
            running_display(layout, width=width, height=height) as display,
            chromium_without_proxy(chromium, display.env),
            BlockingPortal() as portal,
        ):
            cdp, window = Cdp(port), Cdp(port)
            cdp.attach(cdp.open_window())
            setup = Setup(settings=settings, account=account, folder=folder, portal=portal, page_url="", page_port=0)
            make_private_directory(folder / DriverCli.name, owner=None, mode=0o711)
            driver = DriverCli(setup, port, window.open_window())
            yield {"by_hand": partial(_navigate, cdp), "by_driver": partial(driver.run, "open")}
            driver.close()
            window.close()
            cdp.close()


def _navigate(cdp: Cdp, url: str) -> None:
    cdp.call("Page.navigate", url=url)


@contextmanager
def product(site: Site, account: Account | None, folder: Path) -> Iterator[dict[str, Callable[[str], object]]]:
    """Run a server. Yield functions that open a URL in its browser, by DevTools and by its tool."""
    policy = folder / "policy.json"
    policy.write_text(
        json.dumps(
            {
                "open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]},
                "limits": {"calls_per_minute": 100_000},
            }
        ),
        encoding="utf-8",
    )
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "BROWSER_SHELL_POLICY": str(policy),
        "BROWSER_SHELL_RUNTIME_DIR": str(folder / "r"),
        "BROWSER_SHELL_STATE_DIR": str(folder / "state"),
        "BROWSER_REMOTE_DEBUGGING_PORT": "0",
        "PUBLIC_PORT": "0",
    }
    command = Path(sys.executable).with_name("browser-shell")
    process = subprocess.Popen(
        [str(command), "serve"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        port, token = _greeting(process)
        # Creates a session without starting the driver.
        _call_by_mcp(port, token, "tab", "list")
        # Opens a window that connects to the proxy at the address of that session.
        with acting_as(account):  # The server's DevTools port refuses other accounts.
            cdp = Cdp(int(next((folder / "r").glob("*/lock")).parent.name))
        address = ProxyAddresses(port=PROXY_PORT).take(Requester(subject="", session_id=""))
        cdp.attach(_window_behind(cdp, f"http://{address}:{PROXY_PORT}"))
        yield {"proxy": partial(_navigate, cdp), "session": partial(_call_by_mcp, port, token, "open")}
        cdp.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def _window_behind(cdp: Cdp, proxy: str) -> str:
    context = cdp.call("Target.createBrowserContext", proxyServer=proxy, proxyBypassList=NO_BYPASS)["browserContextId"]
    made = cdp.call("Target.createTarget", url="about:blank", browserContextId=context, newWindow=True)
    return str(made["targetId"])


def _greeting(process: subprocess.Popen[str]) -> tuple[int, str]:
    port, token = 0, ""
    for line in process.stdout or ():
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line):
            port = int(found[1])
        if found := re.search(r"^ +token +([\w-]+\.[\w-]+\.[\w-]+)$", line):
            token = found[1]
        if "Ctrl-C" in line:
            threading.Thread(target=lambda: [None for _ in process.stdout or ()], daemon=True).start()
            return port, token
    raise RuntimeError("browser-shell did not become ready")


def _call_by_mcp(port: int, token: str, *argv: str) -> None:
    arguments = {"session_id": "bench", "argv": argv, "timeout_sec": 60}
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    message["params"] = {"name": "browser-shell", "arguments": arguments}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as answer:  # noqa: S310  our own server
        text = answer.read().decode()
    if '"isError":true' in text.replace(" ", ""):
        raise RuntimeError(text[:500])


def _measure(site: Site, openers: dict[str, Callable[[str], object]], page: str, rounds: int) -> Reports:
    """Let the browsers take turns, so that the load of the machine is the same for both. The first round warms up."""
    reports: Reports = {name: [] for name in openers}
    for number in range(rounds + 1):
        for name, open_url in openers.items():
            open_url(site.url(page))
            report = site.report()
            if number:
                reports[name].append(report)
            time.sleep(0.1)
    return reports


async def measure(rounds: int, loads: int) -> dict[str, Any]:
    settings = read_settings()
    account = account_to_drop_to(settings.account)
    folder = Path(tempfile.mkdtemp(prefix="bshe-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        with running_site() as site, product(site, account, folder) as ours:
            async with direct_chromium(settings, account, folder) as direct:
                behind_the_proxy = {"direct": direct["by_hand"], "proxy": ours["proxy"]}
                as_used = {"direct": direct["by_driver"], "session": ours["session"]}
                # In this order, because a driver that has been started observes every page of its browser.
                reports = [
                    await anyio.to_thread.run_sync(_measure, site, openers, page, count)
                    for openers in (behind_the_proxy, as_used)
                    for page, count in (("download", rounds), ("load", loads))
                ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "proxy": _compare(reports[0], reports[1], "proxy"),
        "session": _compare(reports[2], reports[3], "session"),
        "targets": {"download_ratio_at_least": MIN_THROUGHPUT_RATIO, "load_ratio_at_most": MAX_LOAD_RATIO},
        "rounds": {"download": rounds, "load": loads},
    }


def _compare(downloads: Reports, loads: Reports, name: str) -> dict[str, Any]:
    speed = {
        subject: median(report["bytes"] / report["ms"] / 1000 for report in reports)
        for subject, reports in downloads.items()
    }
    load = {subject: median(report["ms"] for report in reports) for subject, reports in loads.items()}
    return {
        "download_mb_per_second": {subject: round(value, 1) for subject, value in speed.items()},
        "download_ratio": round(speed[name] / speed["direct"], 3),
        "load_ms": {subject: round(value, 1) for subject, value in load.items()},
        "load_ratio": round(load[name] / load["direct"], 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.egress", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="downloads of each side")
    parser.add_argument("--loads", type=int, default=21, help="page loads of each side")
    arguments = parser.parse_args()
    result = anyio.run(measure, arguments.rounds, arguments.loads)
    print(json.dumps(result, indent=1))
    met = all(
        comparison["download_ratio"] >= MIN_THROUGHPUT_RATIO and comparison["load_ratio"] <= MAX_LOAD_RATIO
        for comparison in (result["proxy"], result["session"])
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
