"""Metrics: names, values, and the private address that serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address

import anyio
import httpx2
import pytest
from prometheus_client import generate_latest

from browser_shell.core.errors import ConfigurationInvalid, UnknownTool
from browser_shell.ops.metrics import CountedCalls, Metrics, read_metrics_address, serve_metrics
from browser_shell.policy.addresses import Endpoint
from support.fakes import FakeClock, HangingSandbox, a_call, a_pipeline, timing_out_sandbox


def counted(metrics: Metrics, pipeline: object = None) -> CountedCalls:
    return CountedCalls(handler=pipeline or a_pipeline(), metrics=metrics, clock=FakeClock())  # type: ignore[arg-type]  # a pipeline


async def test_calls_are_counted_by_their_result() -> None:
    metrics = Metrics()
    calls = counted(metrics)
    assert [tool.name for tool in calls.tools()] == ["browser-shell"]
    await calls.handle(a_call())
    await counted(metrics, a_pipeline(sandbox=timing_out_sandbox())).handle(a_call())
    with pytest.raises(UnknownTool):
        await calls.handle(a_call(tool="nope"))
    with anyio.move_on_after(0.05):
        await counted(metrics, a_pipeline(sandbox=HangingSandbox())).handle(a_call())
    for result in ("ok", "TIMEOUT", "INVALID_ARGUMENTS", "CANCELLED"):
        assert metrics.registry.get_sample_value("browser_shell_calls_total", {"result": result}) == 1


def test_exposition_has_the_documented_names_types_and_labels() -> None:
    metrics = Metrics()
    metrics.record_call("ok", 0.02)
    metrics.record_call("ok", 500)
    metrics.record_denial(403)
    metrics.sessions_open.set(3)
    lines = [line.removesuffix(".0") for line in generate_latest(metrics.registry).decode().splitlines()]
    assert [line for line in lines if line.startswith("# TYPE")] == [
        "# TYPE browser_shell_calls_total counter",
        "# TYPE browser_shell_call_duration_seconds histogram",
        "# TYPE browser_shell_denied_requests_total counter",
        "# TYPE browser_shell_sessions_open gauge",
    ]
    assert 'browser_shell_calls_total{result="ok"} 2' in lines
    assert 'browser_shell_call_duration_seconds_bucket{le="0.01"} 0' in lines
    assert 'browser_shell_call_duration_seconds_bucket{le="0.025"} 1' in lines
    assert 'browser_shell_call_duration_seconds_bucket{le="+Inf"} 2' in lines
    assert "browser_shell_call_duration_seconds_count 2" in lines
    assert "browser_shell_call_duration_seconds_sum 500.02" in lines
    assert 'browser_shell_denied_requests_total{status="403"} 1' in lines
    assert "browser_shell_sessions_open 3" in lines


@asynccontextmanager
async def serving(metrics: Metrics) -> AsyncIterator[str]:
    ready, ports = anyio.Event(), list[int]()

    def announce(port: int) -> None:
        ports.append(port)
        ready.set()

    async with anyio.create_task_group() as tasks:
        address = Endpoint(address=ip_address("127.0.0.1"), port=0)
        tasks.start_soon(partial(serve_metrics, address, metrics, sessions_open=lambda: 2, on_ready=announce))
        await ready.wait()
        yield f"http://127.0.0.1:{ports[0]}"
        tasks.cancel_scope.cancel()


async def test_metrics_are_served_on_their_own_address() -> None:
    async with serving(Metrics()) as address, httpx2.AsyncClient() as http:
        response = await http.get(f"{address}/metrics")
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "browser_shell_sessions_open 2" in response.text
        assert (await http.get(f"{address}/")).status_code == 404
        assert (await http.post(f"{address}/metrics")).status_code == 404


async def test_client_disconnect_does_not_stop_the_server() -> None:
    async with serving(Metrics()) as address, httpx2.AsyncClient() as http:
        async with await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2])) as stream:
            await stream.send(b"GET")
        assert (await http.get(f"{address}/metrics")).status_code == 200


async def test_address_in_use_is_a_configuration_error() -> None:
    async with serving(Metrics()) as address:
        taken = Endpoint(address=ip_address("127.0.0.1"), port=int(address.rpartition(":")[2]))
        with pytest.raises(ConfigurationInvalid, match="METRICS_ADDRESS"):
            await serve_metrics(taken, Metrics(), sessions_open=lambda: 0)


@pytest.mark.promise("metrics:private")
@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", None),
        ("127.0.0.1:9464", Endpoint(address=ip_address("127.0.0.1"), port=9464)),
        ("10.0.0.5:1", Endpoint(address=ip_address("10.0.0.5"), port=1)),
        ("[::1]:9464", Endpoint(address=ip_address("::1"), port=9464)),
    ],
)
def test_address_is_parsed(text: str, address: Endpoint | None) -> None:
    assert read_metrics_address(text) == address


@pytest.mark.promise("metrics:private")
@pytest.mark.parametrize(
    "text",
    [
        "9464",
        ":9464",
        "0.0.0.0:9464",
        "[::]:9464",
        "8.8.8.8:9464",
        "localhost:9464",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:70000",
        "127.0.0.1:0",
    ],
)
def test_public_or_malformed_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="METRICS_ADDRESS"):
        read_metrics_address(text)
