"""A real server on a loopback port, for as long as a test needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio

from browser_shell.core.ports import CallHandler
from browser_shell.http.gateway import gateway, serve_http
from browser_shell.http.mcp_endpoint import McpEndpoint, PrincipalOf, local_principal, loopback_hosts, loopback_origins
from browser_shell.testing.fakes import numbered_ids


@asynccontextmanager
async def serving(handler: CallHandler, *, principal_of: PrincipalOf = local_principal) -> AsyncIterator[str]:
    """Yields the address without a path, such as `http://127.0.0.1:40001`."""
    ids = iter(numbered_ids())
    endpoint = McpEndpoint(
        handler,
        new_id=lambda: next(ids),
        principal_of=principal_of,
        allowed_hosts=loopback_hosts(),
        allowed_origins=loopback_origins(0),
    )
    ready, ports = anyio.Event(), list[int]()

    def announce(port: int) -> None:
        ports.append(port)
        ready.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve_http, gateway(endpoint), host="127.0.0.1", port=0, on_ready=announce))
        with anyio.fail_after(10):
            await ready.wait()
        try:
            yield f"http://127.0.0.1:{ports[0]}"
        finally:
            tasks.cancel_scope.cancel()
