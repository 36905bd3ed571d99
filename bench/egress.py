"""What the jail and the egress proxy cost: `python -m bench.egress`.

One Chromium behind the product's jail and proxy, another with the same flags and no proxy, both on this machine, take
turns with the same local site, and the pages measure themselves. First both are driven by the same few DevTools calls
(`proxy`); then both by agent-browser, which listens to all that a page does: the product by its tool, the other one by
the bare CLI (`session`). So each comparison has the proxy on one side only, and everything else on both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import statistics
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
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal

from bench.boxes import Setup, acting_as
from bench.subjects import BareCli
from bench.wire import Cdp
from browser_shell.browser.chromium.display import DisplaySettings, running_display
from browser_shell.browser.chromium.jail import PROXY_PORT
from browser_shell.browser.chromium.process import (
    NO_BYPASS,
    ChromiumSettings,
    chromium_argv,
    chromium_env,
    connect_directly,
    devtools_url,
)
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.core.egress import Requester
from browser_shell.process import spawn
from browser_shell.process.accounts import Account, account_to_drop_to, make_private_directory
from browser_shell.settings import Settings, read_settings

MIB = 1024 * 1024
FILE_BYTES = 200 * 1000 * 1000
RESOURCES = 100
LEAST_THROUGHPUT, MOST_LOAD_TIME = 0.5, 1.25
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
    """A process of its own, so that the site's work is nobody else's."""

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
    """The same browser and flags without a jail and without a proxy. Yields what opens a URL, by hand and by driver."""
    base = make_private_directory(folder / "direct", owner=None, mode=0o711)
    mine, theirs = partial(make_private_directory, owner=None), partial(make_private_directory, owner=account)
    marks, logs, home = mine(base / "marks"), mine(base / "log"), theirs(base / "home")
    size = {"width": settings.display_width, "height": settings.display_height}
    display_settings = DisplaySettings(
        directory=theirs(base / "x"),
        window_manager_home=home,  # No window manager runs here.
        marks=marks,
        logs=logs,
        account=account,
        width=settings.display_width,
        height=settings.display_height,
    )
    chromium = ChromiumSettings(
        program=settings.chromium,
        profile=home / "profile",
        home=home,
        temporary=theirs(base / "t"),
        marks=marks,
        logs=logs,
        port=_free_port(),
        proxy_port=0,
        timezone=settings.timezone,
        account=account,
        **size,
    )
    argv = tuple(word for word in chromium_argv(chromium) if not word.startswith("--proxy-"))
    async with running_display(display_settings) as display:
        with (logs / "chromium.log").open("wb") as log:
            process = await spawn.start(
                spawn.Service(
                    name="Chromium",
                    argv=(*argv, "--no-proxy-server"),
                    env=chromium_env(chromium, display.env),
                    cwd=home,
                    account=account,
                    output=log,
                )
            )
        try:
            await devtools_url(chromium.port, partial(connect_directly, chromium.port), process=process)
            cdp, window = Cdp(chromium.port), Cdp(chromium.port)
            cdp.attach(cdp.open_window())
            async with BlockingPortal() as portal:
                setup = Setup(
                    settings=settings, account=account, folder=folder, portal=portal, page_url="", page_port=0
                )
                make_private_directory(folder / BareCli.name, owner=None, mode=0o711)
                driver = BareCli(setup, chromium.port, window.open_window())
                yield {"by_hand": partial(_navigate, cdp), "by_driver": partial(driver.run, "open")}
                driver.close()
            window.close()
            cdp.close()
        finally:
            await spawn.stop(process, grace_seconds=2)


def _navigate(cdp: Cdp, url: str) -> None:
    cdp.call("Page.navigate", url=url)


@contextmanager
def product(site: Site, account: Account | None, folder: Path) -> Iterator[dict[str, Callable[[str], object]]]:
    """A running server. Yields what opens a URL in its browser: by its tool, and behind its proxy alone."""
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
        # This one makes a session without waking the driver.
        _call_by_mcp(port, token, "tab", "list")
        # A window of our own that dials the proxy at the address of that session.
        with acting_as(account):  # The server lets nobody but its own account in.
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _measure(
    site: Site, openers: dict[str, Callable[[str], object]], page: str, rounds: int
) -> dict[str, list[dict[str, float]]]:
    """Takes turns, so that both meet the same moments of a busy machine. The first round warms up."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in openers}
    for number in range(rounds + 1):
        for name, opened in openers.items():
            opened(site.url(page))
            report = site.report()
            if number:
                found[name].append(report)
            time.sleep(0.1)
    return found


def _p50(values: list[float]) -> float:
    return statistics.median(values)


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
                # In this order: once a driver has been woken, it listens to every page of its browser.
                found = [
                    await anyio.to_thread.run_sync(_measure, site, openers, page, count)
                    for openers in (behind_the_proxy, as_used)
                    for page, count in (("download", rounds), ("load", loads))
                ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "proxy": _compared(found[0], found[1], "proxy"),
        "session": _compared(found[2], found[3], "session"),
        "targets": {"download_ratio_at_least": LEAST_THROUGHPUT, "load_ratio_at_most": MOST_LOAD_TIME},
        "rounds": {"download": rounds, "load": loads},
    }


Reports: TypeAlias = dict[str, list[dict[str, float]]]


def _compared(downloads: Reports, loads: Reports, name: str) -> dict[str, Any]:
    speed = {who: _p50([each["bytes"] / each["ms"] / 1000 for each in some]) for who, some in downloads.items()}
    load = {who: _p50([each["ms"] for each in some]) for who, some in loads.items()}
    return {
        "download_mb_per_second": {who: round(value, 1) for who, value in speed.items()},
        "download_ratio": round(speed[name] / speed["direct"], 3),
        "load_ms": {who: round(value, 1) for who, value in load.items()},
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
        one["download_ratio"] >= LEAST_THROUGHPUT and one["load_ratio"] <= MOST_LOAD_TIME
        for one in (result["proxy"], result["session"])
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
