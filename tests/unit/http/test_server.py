"""How the public listener opens, serves and stops, and which parts of uvicorn it relies on."""

from __future__ import annotations

import inspect
import signal
import socket
from importlib.metadata import requires, version
from typing import Any
from unittest.mock import MagicMock

import anyio
import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import Server, ServerState

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.connection import RefusableWebSocket, StrictHttp
from browser_shell.http.server import UvicornServer, is_loopback, listen_on
from support.fakes import a_pipeline
from support.loopback_server import serving


def test_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationInvalid, match=str(port)):
            listen_on("127.0.0.1", port)


def test_listening_address_must_be_numeric() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"not\.an\.address"):
        listen_on("not.an.address", 0)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("localhost", False)],
)
def test_only_loopback_addresses_are_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


async def test_signal_handlers_of_the_program_stay() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with serving(a_pipeline()):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_idle_server_stops_quickly() -> None:
    async with serving(a_pipeline()):
        started_at = anyio.current_time()
    assert anyio.current_time() - started_at < 1


# `http/connection.py` and `http/server.py` override methods and use attributes of uvicorn that are not documented.
# Before you allow another minor version in pyproject.toml, also read uvicorn's changes of `server.py`,
# `protocols/http/httptools_impl.py` and `protocols/websockets/websockets_sansio_impl.py`.


async def _app(scope: Scope, receive: Receive, send: Send) -> None: ...


def _cycle() -> RequestResponseCycle:
    arguments = {name: MagicMock() for name in inspect.signature(RequestResponseCycle).parameters}
    return RequestResponseCycle(**arguments)


def _protocol() -> HttpToolsProtocol:
    return HttpToolsProtocol(config=Config(_app), server_state=ServerState(), app_state={}, _loop=MagicMock())


def _websocket() -> WebSocketsSansIOProtocol:
    return WebSocketsSansIOProtocol(config=Config(_app), server_state=ServerState(), app_state={}, _loop=MagicMock())


_ATTRIBUTES: dict[str, tuple[Any, list[str]]] = {
    "HttpToolsProtocol": (
        _protocol,
        ["app_state", "connections", "cycle", "flow", "loop", "parser", "server_state", "transport"],
    ),
    "RequestResponseCycle": (
        _cycle,
        [
            "disconnected",
            "keep_alive",
            "message_event",
            "response_complete",
            "response_started",
            "waiting_for_100_continue",
        ],
    ),
    "FlowControl": (lambda: FlowControl(MagicMock()), ["resume_reading"]),
    "WebSocketsSansIOProtocol": (_websocket, ["handshake_complete"]),
    "ServerState": (ServerState, ["total_requests"]),
    "Server": (lambda: Server(Config(_app)), ["serve", "should_exit"]),
}
_OVERRIDES: dict[type, set[str]] = {
    StrictHttp: {
        "_should_upgrade",
        "connection_lost",
        "connection_made",
        "data_received",
        "handle_websocket_upgrade",
        "on_headers_complete",
        "on_message_begin",
        "on_response_complete",
        "pause_writing",
        "resume_writing",
        "send_400_response",
    },
    RefusableWebSocket: {"send"},
    UvicornServer: {"capture_signals", "startup"},
}


@pytest.mark.parametrize(
    ("owner", "attribute"), [(owner, name) for owner, (_, names) in _ATTRIBUTES.items() for name in names]
)
def test_uvicorn_has_the_attribute_that_the_listener_uses(owner: str, attribute: str) -> None:
    make, _ = _ATTRIBUTES[owner]
    assert hasattr(make(), attribute), (
        f"uvicorn {version('uvicorn')} has no {owner}.{attribute}. http/connection.py or http/server.py uses it: "
        "find its replacement in uvicorn before you change the pin in pyproject.toml."
    )


@pytest.mark.parametrize("own", _OVERRIDES)
def test_methods_that_override_uvicorns_are_known_and_have_its_parameters(own: type) -> None:
    base = own.__mro__[1]
    functions = {name for name, value in vars(own).items() if inspect.isfunction(value) and name != "__init__"}
    assert {name for name in functions if hasattr(base, name)} == _OVERRIDES[own], (
        f"uvicorn {version('uvicorn')} no longer has a method that {own.__name__} overrides, or has a new one with the "
        f"name of a method of {own.__name__}. Compare both classes before you change the pin in pyproject.toml."
    )
    for name in _OVERRIDES[own]:
        expected = list(inspect.signature(getattr(base, name)).parameters)
        assert list(inspect.signature(getattr(own, name)).parameters) == expected, (
            f"uvicorn {version('uvicorn')} calls {base.__name__}.{name} with other arguments: {expected}"
        )


def test_uvicorn_is_pinned_to_the_minor_version_that_these_tests_ran_with() -> None:
    major, minor = map(int, version("uvicorn").split(".")[:2])
    (pin,) = (line for line in requires("browser-shell") or [] if line.startswith("uvicorn"))
    assert set(pin.removeprefix("uvicorn").split(",")) == {f">={major}.{minor}", f"<{major}.{minor + 1}"}
