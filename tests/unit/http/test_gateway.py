from __future__ import annotations

import signal
import socket

import anyio
import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.gateway import gateway, serve_http
from browser_shell.http.mcp_endpoint import McpEndpoint, loopback_hosts, loopback_origins
from browser_shell.testing.fakes import a_pipeline
from browser_shell.testing.live import serving


def an_endpoint() -> McpEndpoint:
    return McpEndpoint(a_pipeline(), new_id=lambda: "c1", allowed_hosts=loopback_hosts())


def ignore(port: int) -> None:
    pass


async def test_a_port_that_is_taken_stops_the_start_and_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationInvalid, match=str(port)):
            await serve_http(gateway(an_endpoint()), host="127.0.0.1", port=port, on_ready=ignore)


async def test_a_host_that_is_no_address_stops_the_start() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"not\.an\.address"):
        await serve_http(gateway(an_endpoint()), host="not.an.address", port=0, on_ready=ignore)


async def test_signals_stay_with_the_program() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with serving(a_pipeline()):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_stopping_an_idle_server_is_quick() -> None:
    async with serving(a_pipeline()):
        started = anyio.current_time()
    assert anyio.current_time() - started < 1


async def test_a_websocket_to_a_path_that_does_not_exist_is_closed() -> None:
    sent: list[str] = []

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(str(message["type"]))

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/ws", "headers": []}
    await gateway(an_endpoint())(scope, receive, send)
    assert sent == ["websocket.close"]


def test_a_loopback_server_trusts_pages_of_its_own_port_only() -> None:
    assert loopback_origins(8080) == ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"]
