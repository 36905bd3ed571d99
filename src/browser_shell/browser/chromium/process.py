"""Chromium: its flags, its start, and the address of its DevTools."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process, SocketStream

from browser_shell.browser.chromium.log_files import open_log_file
from browser_shell.browser.devtools.client import DevTools
from browser_shell.core.errors import BrowserUnavailable
from browser_shell.process import orphans, spawn
from browser_shell.process.accounts import Account

_START_SECONDS = 20.0
_POLL_SECONDS = 0.05
_ANSWER_BYTES = 65536

NO_BYPASS = "<-loopback>"
"""Without it Chromium dials loopback and link-local addresses itself."""

# Never here: --no-sandbox, --disable-web-security, --remote-allow-origins.
_CONSTANT_FLAGS = (
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--disable-gpu",
    "--password-store=basic",
    # Windows of different sessions cover each other; without these three, every click in a covered one takes 5 s.
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    # The browser's own calls home, and ways around a proxy.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--allow-browser-signin=false",
    "--gaia-url=http://127.0.0.1:1",
    "--component-updater=url-source=http://127.0.0.1:1/",
    "--no-pings",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # People watch this window: no bars that an agent cannot answer.
    "--disable-session-crashed-bubble",
    "--hide-crash-restore-bubble",
    "--disable-search-engine-choice-screen",
    "--disable-breakpad",
    "--lang=en-US",
    "--disable-features="
    # An 82 MB renderer for the address bar's popup, and a spare one for pages that may never come.
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup,PreloadTopChromeWebUI,SpareRendererForSitePerProcess,"
    "Translate,MediaRouter,DialMediaRouteProvider,OptimizationHints,NetworkTimeServiceQuerying",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChromiumSettings:
    """How to start the browser."""

    program: Path
    profile: Path
    """Thrown away at each start: sessions live in contexts of their own."""
    home: Path
    temporary: Path
    """In place of /tmp, and shut once the browser runs."""
    marks: Path
    logs: Path
    port: int
    """Of the DevTools, on 127.0.0.1."""
    width: int
    height: int
    proxy_port: int
    """Of the egress proxy, on every 127.x.y.z that the browser can see."""
    timezone: str
    account: Account | None


def chromium_argv(settings: ChromiumSettings) -> tuple[str, ...]:
    """The whole command line."""
    return (
        str(settings.program),
        f"--user-data-dir={settings.profile}",
        f"--remote-debugging-port={settings.port}",
        f"--window-size={settings.width},{settings.height}",
        # Sessions have proxies of their own; whatever is left is the browser's own business and goes nowhere.
        f"--proxy-server=http://127.0.0.1:{settings.proxy_port}",
        f"--proxy-bypass-list={NO_BYPASS}",
        *_CONSTANT_FLAGS,
    )


def chromium_env(settings: ChromiumSettings, display_env: Mapping[str, str]) -> dict[str, str]:
    """All of it: nothing is inherited, so no secret of the server gets in."""
    return {
        **display_env,
        "HOME": str(settings.home),
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(settings.temporary),
        **({"TZ": settings.timezone} if settings.timezone else {}),
    }


@asynccontextmanager
async def unjailed_chromium(settings: ChromiumSettings, display_env: Mapping[str, str]) -> AsyncIterator[Process]:
    """For --unsafe-no-jail: Chromium on this machine's own network, ended with the block."""
    with open_log_file(settings.logs / "chromium.log") as log:
        process = await spawn.start(
            spawn.Service(
                name="Chromium",
                argv=chromium_argv(settings),
                env=chromium_env(settings, display_env),
                cwd=settings.home,
                account=settings.account,
                output=log,
            )
        )
    orphans.save_identity(settings.marks / "chromium", process.pid)
    try:
        yield process
    finally:
        await spawn.stop(process, grace_seconds=2)
        (settings.marks / "chromium").unlink(missing_ok=True)


Connect = Callable[[], Awaitable[socket.socket]]


async def devtools_url(port: int, connect: Connect, *, process: Process | None = None) -> str:
    """Waits until a browser answers on its DevTools port, and returns the address of its socket.

    Raises: BrowserUnavailable when `process` ends first or no answer comes in time.
    """
    try:
        with anyio.fail_after(_START_SECONDS):
            while True:
                if process is not None and process.returncode is not None:
                    raise BrowserUnavailable(
                        f"Chromium ended at its start (exit {process.returncode}); see chromium.log"
                    )
                found = await _ask_version(port, connect)
                if found:
                    return found
                await anyio.sleep(_POLL_SECONDS)
    except TimeoutError as late:
        raise BrowserUnavailable(f"no browser answers on 127.0.0.1:{port}; see chromium.log") from late


async def connect_directly(port: int) -> socket.socket:
    """A connection to a DevTools port of this machine. Raises: BrowserUnavailable."""
    link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    link.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(link, ("127.0.0.1", port))
    except OSError as cause:
        link.close()
        raise BrowserUnavailable(f"no browser answers on 127.0.0.1:{port}") from cause
    return link


async def is_process(devtools: DevTools, pid: int) -> bool:
    """Whether this connection leads to the Chromium we started, and not to whoever else had taken its port."""
    answer = await devtools.call("SystemInfo.getProcessInfo")
    listed = answer.get("processInfo")
    return isinstance(listed, list) and any(isinstance(one, dict) and one.get("id") == pid for one in listed)


async def _ask_version(port: int, connect: Connect) -> str:
    """One plain HTTP request; empty when the port does not answer like a browser."""
    request = f"GET /json/version HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    received = b""
    try:
        with anyio.move_on_after(2):
            async with await SocketStream.from_socket(await connect()) as stream:
                await stream.send(request.encode("ascii"))
                while len(received) < _ANSWER_BYTES:
                    received += await stream.receive()
                    if received.partition(b"\r\n\r\n")[2].rstrip().endswith(b"}"):
                        break
    except (OSError, BrowserUnavailable, anyio.EndOfStream, anyio.BrokenResourceError):
        pass
    try:
        answer = json.loads(received.partition(b"\r\n\r\n")[2])
    except ValueError:
        return ""
    url = answer.get("webSocketDebuggerUrl", "") if isinstance(answer, dict) else ""
    return url if isinstance(url, str) else ""
