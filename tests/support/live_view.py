"""The live view without the gateway: tests pass the grant and may use a fake display."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from browser_shell.core.access import SessionWindow, TicketGrant, ViewMode
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.viewer.app import build_viewer_app
from browser_shell.viewer.bridge import VncBridge
from browser_shell.viewer.messages import RecentActivity
from browser_shell.viewer.takeover import Takeover
from support.fakes import FakeClock, RecordingAudit

IDLE_SECONDS = 10.0
GREETING = b"RFB 003.008\n"


@dataclass
class FakeWindows:
    """Windows of one subject; records the windows that were raised."""

    open: list[SessionWindow] = field(default_factory=list)
    raised: list[tuple[str, str]] = field(default_factory=list)

    def count(self) -> int:
        return len(self.open)

    def windows(self, subject: str) -> list[SessionWindow]:
        return self.open

    async def show_latest(self) -> None:
        return

    async def bring_to_front(self, subject: str, session_id: str) -> None:
        self.raised.append((subject, session_id))


def a_novnc(directory: Path) -> Path:
    """Create the minimal noVNC directory that the viewer accepts."""
    (directory / "core").mkdir(parents=True)
    (directory / "vendor").mkdir()
    (directory / "core" / "rfb.js").write_text("export default class {}", encoding="utf-8")
    return directory


@dataclass
class LiveView:
    """A viewer application with fakes for everything around it."""

    directory: Path
    clock: Clock = field(default_factory=FakeClock)
    audit: AuditLog = field(default_factory=RecordingAudit)
    windows: FakeWindows = field(default_factory=FakeWindows)
    activity: RecentActivity = field(default_factory=RecentActivity)
    grant: TicketGrant | None = field(
        default_factory=lambda: TicketGrant(subject="alice", mode=ViewMode.VIEW, ends_at=None)
    )
    takeover: Takeover = field(init=False)
    display_socket: Path = field(init=False)

    def __post_init__(self) -> None:
        self.takeover = Takeover(clock=self.clock, audit=self.audit, idle_seconds=IDLE_SECONDS)
        self.display_socket = self.directory / "vnc.sock"

    def app(self) -> ASGIApp:
        numbers = itertools.count(1)
        bridge = VncBridge(
            display_socket=self.display_socket,
            takeover=self.takeover,
            activity=self.activity,
            windows=self.windows,
            audit=self.audit,
            clock=self.clock,
            new_id=lambda: f"viewer-{next(numbers)}",
        )
        inner = build_viewer_app(novnc=a_novnc(self.directory / "novnc"), bridge=bridge)

        async def granted(scope: Scope, receive: Receive, send: Send) -> None:
            state = {} if self.grant is None else {"grant": self.grant}
            await inner({**scope, "state": state}, receive, send)

        return granted


async def until(condition: Callable[[], object]) -> None:
    """Poll until a condition holds that has no event to wait for."""
    for _ in range(500):
        if condition():
            return
        await anyio.sleep(0.02)
    raise AssertionError("the condition did not hold within 10 s")


class FakeDisplay:
    """Sends the greeting of Xvnc and records the bytes that it receives."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.changed = anyio.Event()
        self.clients: list[anyio.abc.SocketStream] = []

    async def handle(self, stream: anyio.abc.SocketStream) -> None:
        self.clients.append(stream)
        async with stream:
            await stream.send(GREETING)
            try:
                while True:
                    self.received += await stream.receive()
                    changed, self.changed = self.changed, anyio.Event()
                    changed.set()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    async def wait_for(self, condition: Callable[[bytes], bool]) -> bytes:
        with anyio.fail_after(5):
            while not condition(bytes(self.received)):
                await self.changed.wait()
        return bytes(self.received)

    async def end_all(self) -> None:
        for client in self.clients:
            await client.aclose()


@asynccontextmanager
async def running_display(path: Path) -> AsyncIterator[FakeDisplay]:
    display = FakeDisplay()
    listener = await anyio.create_unix_listener(path)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, display.handle)
        try:
            yield display
        finally:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving_app(app: ASGIApp) -> AsyncIterator[str]:
    """Serve one application; yield `127.0.0.1:port`."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=2,
        )
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server._serve, None))
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.should_exit = True


async def stub_viewer(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one page, and a socket that sends its grant."""
    if scope["type"] == "http":
        exists = scope["path"] in ("/vnc", "/vnc/", "/vnc/index.html", "/vnc/core/rfb.js")
        await PlainTextResponse("page" if exists else "Not Found", 200 if exists else 404)(scope, receive, send)
        return
    socket = WebSocket(scope, receive, send)
    grant = scope["state"]["grant"]
    await socket.accept()
    await socket.send_text(f"{grant.subject} {grant.mode.value} {scope['query_string'].decode()}")
    async for _ in socket.iter_bytes():
        pass
