"""Which calls are answered by one JSON body, and how the work for one learns that its client has gone."""

from __future__ import annotations

from typing import Any

import pytest

from browser_shell.asgi.disconnect import DisconnectSignal
from browser_shell.asgi.request_headers import request_headers
from browser_shell.mcp_server.endpoint import McpEndpoint
from support.fakes import FakeClock, a_pipeline

MODERN = [(b"mcp-protocol-version", b"2026-07-28"), (b"accept", b"application/json, text/event-stream")]
UNKNOWN_ERA = [(b"accept", b"application/json, text/event-stream")]
LEGACY = [(b"mcp-protocol-version", b"2025-11-25"), *UNKNOWN_ERA]
ONLY_JSON = [(b"mcp-protocol-version", b"2026-07-28"), (b"accept", b"application/json")]


def call(arguments: Any = None, *, name: str = "browser-shell", meta: Any = None) -> Any:
    given = {"session_id": "a", "argv": ["snapshot"]} if arguments is None else arguments
    params = {"name": name, "arguments": given, "_meta": {} if meta is None else meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def is_brief(request: Any, headers: list[tuple[bytes, bytes]] | None = None) -> bool:
    endpoint = McpEndpoint(a_pipeline(), clock=FakeClock(), new_id=lambda: "1")
    return endpoint._is_brief(request_headers({"headers": headers or MODERN}), request)


def test_a_call_that_takes_its_usual_time_is_brief() -> None:
    assert is_brief(call())
    assert is_brief(call({"timeout_sec": 30}))


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(call({"timeout_sec": 31}), id="a proxy would give up on it"),
        pytest.param(call({"timeout_sec": "5"}), id="not a number"),
        pytest.param(call({"timeout_sec": None}), id="nothing"),
        pytest.param(call(name="other"), id="a tool that says nothing of its time"),
        pytest.param(call(meta={"progressToken": 1}), id="somebody follows it"),
        pytest.param({"method": "tools/list", "params": {"_meta": {}}}, id="no call"),
        pytest.param({"method": "tools/call", "params": {"name": "browser-shell"}}, id="without arguments"),
        pytest.param(call(arguments=[1]), id="arguments of another kind"),
        pytest.param(None, id="nothing at all"),
    ],
)
def test_whatever_else_may_become_a_stream(request_: Any) -> None:
    assert not is_brief(request_)


@pytest.mark.parametrize("headers", [UNKNOWN_ERA, LEGACY, ONLY_JSON])
def test_a_client_of_the_older_era_or_without_streams_gets_what_it_got(headers: list[tuple[bytes, bytes]]) -> None:
    assert not is_brief(call(), headers)


def test_a_departure_is_told_to_the_work_of_the_moment_and_to_no_other() -> None:
    departure, told = DisconnectSignal(), list[str]()
    departure.happened()
    with departure.calls(lambda: told.append("now")):
        departure.happened()
    departure.happened()
    assert told == ["now"]


def test_work_that_ends_late_does_not_deafen_the_work_after_it() -> None:
    departure, told = DisconnectSignal(), list[str]()
    first = departure.calls(lambda: told.append("first"))
    first.__enter__()
    with departure.calls(lambda: told.append("second")):
        first.__exit__(None, None, None)
        departure.happened()
    assert told == ["second"]
