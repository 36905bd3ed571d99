"""The public listener: how it opens, serves and stops."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import anyio
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.connection import HttpTimeouts, RefusableWebSocket, StrictHttp

MAX_SOCKET_MESSAGE_BYTES = 1024 * 1024
FINISH_SECONDS = 2
"""Time that open requests get to finish when the server stops."""
STOP_SECONDS = FINISH_SECONDS + 3


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this address is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen_on(host: str, port: int) -> socket.socket:
    """Open a listening socket. Raises: ConfigurationInvalid when that fails."""
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


async def serve_listener(
    app: ASGIApp, listener: socket.socket, *, on_ready: Callable[[int], None], timeouts: HttpTimeouts | None = None
) -> None:
    """Serve until cancelled, then let open requests finish and close the listener. `on_ready` gets the port."""
    config = Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # X-Forwarded-For and the like are not trusted.
        # uvicorn creates the protocol itself, from a class. Hence a subclass for each set of timeouts.
        http=type("StrictHttp", (StrictHttp,), {"timeouts": timeouts or HttpTimeouts()}),
        ws=RefusableWebSocket,
        ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=FINISH_SECONDS,
    )
    server = UvicornServer(config, on_startup=lambda: on_ready(int(listener.getsockname()[1])))
    # Cancelling uvicorn would leave connections open, so it is shielded and stopped by its flag.
    shield = anyio.CancelScope(shield=True)

    async def run() -> None:
        with shield:
            await server.serve(sockets=[listener])

    with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            try:
                await anyio.sleep_forever()
            finally:
                server.should_exit = True
                shield.deadline = anyio.current_time() + STOP_SECONDS


class UvicornServer(Server):
    """uvicorn's server without its signal handlers, which belong to the program around it."""

    def __init__(self, config: Config, *, on_startup: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_startup = on_startup

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # uvicorn's is a generator
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_startup()
