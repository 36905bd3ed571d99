"""Chromium's flags and environment, its start without a jail, and the address of its DevTools."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process, SocketStream

from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout
from browser_shell.browser.chromium.services import running_service
from browser_shell.browser.devtools.client import DevTools
from browser_shell.core.errors import BrowserUnavailable

_START_SECONDS = 20.0
_POLL_SECONDS = 0.05
_MAX_RESPONSE_BYTES = 65536
_REQUEST_SECONDS = 2.0

NO_BYPASS = "<-loopback>"
"""Proxy bypass list. Without this entry Chromium connects to loopback and link-local addresses without the proxy."""

# --no-sandbox, --disable-web-security and --remote-allow-origins must not be added.
_CONSTANT_FLAGS = (
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--disable-gpu",
    # Without it, input is dropped until the page has painted its first text or picture, for example on an empty canvas.
    "--allow-pre-commit-input",
    # Chromium finds no mouse on the display of Xvnc. Pages would hide what appears on hover, and show layouts for touch
    # screens. The values are PointerType and HoverType of Blink: a fine pointer that can hover.
    "--blink-settings=primaryPointerType=4,availablePointerTypes=4,primaryHoverType=2,availableHoverTypes=2",
    "--password-store=basic",
    # Windows of different sessions cover each other. Without these flags, a click in a covered window takes 5 s.
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    # Connections of the browser itself, and ways around the proxy.
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
    # Bubbles and bars that only a person could answer.
    "--disable-session-crashed-bubble",
    "--hide-crash-restore-bubble",
    "--disable-search-engine-choice-screen",
    "--disable-breakpad",
    "--lang=en-US",
    "--disable-features="
    # The first three start a renderer of 82 MB for the address bar's popup, the fourth a spare renderer.
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup,PreloadTopChromeWebUI,SpareRendererForSitePerProcess,"
    "Translate,MediaRouter,DialMediaRouteProvider,OptimizationHints,NetworkTimeServiceQuerying",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChromiumSettings:
    """Settings with which Chromium is started."""

    program: Path
    layout: RuntimeLayout
    port: int
    """The DevTools port on 127.0.0.1."""
    width: int
    height: int
    proxy_port: int
    """The port of the egress proxy, which listens on all addresses of 127.0.0.0/8."""
    timezone: str


def chromium_argv(settings: ChromiumSettings) -> tuple[str, ...]:
    """Build the command line."""
    return (
        str(settings.program),
        f"--user-data-dir={settings.layout.profile}",
        f"--remote-debugging-port={settings.port}",
        f"--window-size={settings.width},{settings.height}",
        # Each session sets a proxy address of its own. The proxy refuses this one, which only Chromium itself uses.
        f"--proxy-server=http://127.0.0.1:{settings.proxy_port}",
        f"--proxy-bypass-list={NO_BYPASS}",
        *_CONSTANT_FLAGS,
    )


def chromium_env(settings: ChromiumSettings, display_env: Mapping[str, str]) -> dict[str, str]:
    """Build the environment. Nothing is inherited, so it contains no secret of the server."""
    return {
        **display_env,
        "HOME": str(settings.layout.chromium_home),
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(settings.layout.temporary),
        **({"TZ": settings.timezone} if settings.timezone else {}),
    }


def unjailed_chromium(
    settings: ChromiumSettings, display_env: Mapping[str, str]
) -> AbstractAsyncContextManager[Process]:
    """Run Chromium in the network of the machine, for --unsafe-no-jail; stop it at the end of the block."""
    return running_service(
        "chromium",
        argv=chromium_argv(settings),
        env=chromium_env(settings, display_env),
        cwd=settings.layout.chromium_home,
        layout=settings.layout,
        grace_seconds=2,
    )


Connect = Callable[[], Awaitable[socket.socket]]


async def devtools_url(port: int, connect: Connect, *, process: Process | None = None) -> str:
    """Wait until a browser answers on its DevTools port, and return the URL of its WebSocket.

    Raises: BrowserUnavailable when `process` ends first or no answer comes in time.
    """
    try:
        with anyio.fail_after(_START_SECONDS):
            while True:
                if process is not None and process.returncode is not None:
                    raise BrowserUnavailable(
                        f"Chromium ended during its start (exit {process.returncode}); see chromium.log"
                    )
                url = await _query_devtools_url(port, connect)
                if url:
                    return url
                await anyio.sleep(_POLL_SECONDS)
    except TimeoutError as late:
        raise BrowserUnavailable(f"no browser answers on 127.0.0.1:{port}; see chromium.log") from late


async def connect_directly(port: int) -> socket.socket:
    """Connect to a DevTools port in the network of the machine. Raises: BrowserUnavailable."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    except OSError as cause:
        connection.close()
        raise BrowserUnavailable(f"no browser answers on 127.0.0.1:{port}") from cause
    return connection


async def has_process(devtools: DevTools, pid: int) -> bool:
    """Check that a DevTools connection leads to the browser with this process, not to another one on the same port."""
    reply = await devtools.call("SystemInfo.getProcessInfo")
    processes = reply.get("processInfo")
    return isinstance(processes, list) and any(isinstance(each, dict) and each.get("id") == pid for each in processes)


async def _query_devtools_url(port: int, connect: Connect) -> str:
    """Send one HTTP request to the DevTools port; return an empty string when the response is not that of a browser."""
    request = f"GET /json/version HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    received = b""
    try:
        with anyio.move_on_after(_REQUEST_SECONDS):
            async with await SocketStream.from_socket(await connect()) as stream:
                await stream.send(request.encode("ascii"))
                while len(received) < _MAX_RESPONSE_BYTES:
                    received += await stream.receive()
                    if received.partition(b"\r\n\r\n")[2].rstrip().endswith(b"}"):
                        break
    except (OSError, BrowserUnavailable, anyio.EndOfStream, anyio.BrokenResourceError):
        pass
    try:
        version = json.loads(received.partition(b"\r\n\r\n")[2])
    except ValueError:
        return ""
    url = version.get("webSocketDebuggerUrl", "") if isinstance(version, dict) else ""
    return url if isinstance(url, str) else ""
