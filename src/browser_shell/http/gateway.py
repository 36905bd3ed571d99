"""The one public port: which paths exist, and how the server listens and stops."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import anyio
import structlog
import uvicorn
from anyio.abc import TaskStatus
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.mcp_endpoint import McpEndpoint

SECONDS_TO_FINISH = 2
SECONDS_TO_STOP = SECONDS_TO_FINISH + 3
KEEP_ALIVE_SECONDS = 75

log = structlog.get_logger()


def gateway(mcp: McpEndpoint) -> ASGIApp:
    """`/mcp` and nothing else. Every other path answers 403, whether something could be there or not."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.run():
            yield

    return Router(routes=[Route("/mcp", mcp)], redirect_slashes=False, default=_forbidden, lifespan=lifespan)


async def _forbidden(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose()(scope, receive, send)
        return
    await PlainTextResponse("Forbidden\n", status_code=403)(scope, receive, send)


async def serve_http(app: ASGIApp, *, host: str, port: int, on_ready: Callable[[int], None]) -> None:
    """Serve until cancelled, then give open calls a moment to end. `on_ready` gets the port, also when 0 was asked for.

    Raises: ConfigurationInvalid when the address cannot be listened on.
    """
    listener = _listen(host, port)
    server = _Server(
        uvicorn.Config(
            app,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SECONDS_TO_FINISH,
        )
    )

    async def serve(*, task_status: TaskStatus[None]) -> None:
        # uvicorn has to be asked to stop; a cancellation in its middle would leave connections behind.
        with stopping, listener:
            await server.serve_announced(listener, task_status)

    stopping = anyio.CancelScope(shield=True)
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve)
        on_ready(int(listener.getsockname()[1]))
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True
            stopping.deadline = anyio.current_time() + SECONDS_TO_STOP


class _Server(uvicorn.Server):
    """uvicorn inside somebody else's program: it neither takes the signals nor raises them again."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # theirs is a generator's type
        return nullcontext()

    async def serve_announced(self, listener: socket.socket, task_status: TaskStatus[None]) -> None:
        self._announce = task_status
        await self.serve(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce.started()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigurationInvalid(f"{host} is not an address to listen on") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigurationInvalid(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener
