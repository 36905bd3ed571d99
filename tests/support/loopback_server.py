"""A real server on a loopback port."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
from starlette.types import ASGIApp

from browser_shell.core.ports import AuditLog, CallHandler, Clock
from browser_shell.http.connection import HttpTimeouts
from browser_shell.http.gateway import Gateway, GatewaySettings
from browser_shell.http.routes import parse_trusted_hosts
from browser_shell.http.server import listen_on, serve_listener
from browser_shell.http.tokens import Authenticator, NoAuth
from browser_shell.ops.metrics import Metrics
from support.fakes import FakeClock, RecordingAudit, numbered_ids

SERVER_COMMAND = (
    *("/usr/bin/env", f"PYTHONPATH={Path(__file__).resolve().parents[1]}"),
    *(sys.executable, "-m", "support.serve_without_browser"),
)
"""Command that starts a server without a browser. Its arguments are appended."""
NO_RATE_LIMIT = GatewaySettings(trusted_hosts=parse_trusted_hosts(listen="127.0.0.1"), requests_per_second=10_000)


@asynccontextmanager
async def serving(
    handler: CallHandler,
    *,
    authenticator: Authenticator | None = None,
    settings: GatewaySettings = NO_RATE_LIMIT,
    viewer: ASGIApp | None = None,
    audit: AuditLog | None = None,
    clock: Clock | None = None,
    timeouts: HttpTimeouts | None = None,
) -> AsyncIterator[str]:
    """Serve a handler; yield the URL without a path, such as `http://127.0.0.1:40001`."""
    ids = iter(numbered_ids())
    gateway = Gateway(
        settings,
        handler=handler,
        authenticator=authenticator or NoAuth(),
        viewer=viewer,
        audit=audit or RecordingAudit(),
        clock=clock or FakeClock(),
        new_id=lambda: next(ids),
        metrics=Metrics(),
    )
    ready, ports = anyio.Event(), list[int]()

    def announce(port: int) -> None:
        ports.append(port)
        ready.set()

    async with anyio.create_task_group() as tasks:
        listener = listen_on("127.0.0.1", 0)
        tasks.start_soon(partial(serve_listener, gateway, listener, on_ready=announce, timeouts=timeouts))
        with anyio.fail_after(10):
            await ready.wait()
        try:
            yield f"http://127.0.0.1:{ports[0]}"
        finally:
            tasks.cancel_scope.cancel()
