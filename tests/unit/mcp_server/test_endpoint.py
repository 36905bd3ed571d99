"""Choice between a JSON response and an event stream, and the disconnect signal."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from browser_shell.mcp_server.endpoint import McpEndpoint
from support.fakes import FakeClock, a_pipeline

MODERN = [(b"mcp-protocol-version", b"2026-07-28"), (b"accept", b"application/json, text/event-stream")]
UNKNOWN_ERA = [(b"accept", b"application/json, text/event-stream")]
LEGACY = [(b"mcp-protocol-version", b"2025-11-25"), *UNKNOWN_ERA]
ONLY_JSON = [(b"mcp-protocol-version", b"2026-07-28"), (b"accept", b"application/json")]


def a_call(arguments: Any = None, *, name: str = "browser-shell", meta: Any = None) -> Any:
    values = {"session_id": "a", "argv": ["snapshot"]} if arguments is None else arguments
    params = {"name": name, "arguments": values, "_meta": {} if meta is None else meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def gets_json(request: Any, headers: list[tuple[bytes, bytes]] | None = None) -> bool:
    endpoint = McpEndpoint(a_pipeline(), clock=FakeClock(), new_id=lambda: "1")
    return endpoint._fits_json_response(Headers(raw=headers or MODERN), request)


def test_short_call_gets_a_json_response() -> None:
    assert gets_json(a_call())
    assert gets_json(a_call({"timeout_sec": 30}))


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(a_call({"timeout_sec": 31}), id="long"),
        pytest.param(a_call({"timeout_sec": "5"}), id="not a number"),
        pytest.param(a_call({"timeout_sec": None}), id="null"),
        pytest.param(a_call(name="other"), id="unknown tool"),
        pytest.param(a_call(meta={"progressToken": 1}), id="progress token"),
        pytest.param({"method": "tools/list", "params": {"_meta": {}}}, id="not a call"),
        pytest.param({"method": "tools/call", "params": {"name": "browser-shell"}}, id="no arguments"),
        pytest.param(a_call(arguments=[1]), id="arguments are a list"),
        pytest.param(None, id="no request"),
    ],
)
def test_other_requests_get_an_event_stream(request_: Any) -> None:
    assert not gets_json(request_)


@pytest.mark.parametrize("headers", [UNKNOWN_ERA, LEGACY, ONLY_JSON])
def test_legacy_client_or_client_without_streams_gets_no_json_response(headers: list[tuple[bytes, bytes]]) -> None:
    assert not gets_json(a_call(), headers)
