"""Prometheus metrics. No label names a caller or a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketStream
from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from browser_shell.core.calls import ToolCall, ToolOutcome
from browser_shell.core.errors import BrowserShellError, ConfigurationInvalid
from browser_shell.core.ports import CallHandler, Clock, ReportProgress, ToolDescription, ignore_progress
from browser_shell.http1.heads import write_final_response
from browser_shell.policy.addresses import Endpoint, parse_endpoint

BUCKETS_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_REQUEST_SECONDS = 5
_MAX_REQUEST_BYTES = 4096

log = structlog.get_logger()


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # would add a *_created series to each metric
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "browser_shell_calls", "Tool calls, by ok or the name of the error.", ["result"], registry=self.registry
        )
        self._call_seconds = Histogram(
            "browser_shell_call_duration_seconds",
            "Duration of tool calls.",
            buckets=BUCKETS_SECONDS,
            registry=self.registry,
        )
        self._denied_requests = Counter(
            "browser_shell_denied_requests",
            "HTTP requests refused by the gateway, by status.",
            ["status"],
            registry=self.registry,
        )
        self.sessions_open = Gauge("browser_shell_sessions_open", "Open sessions.", registry=self.registry)

    def record_call(self, result: str, seconds: float) -> None:
        self._calls.labels(result).inc()
        self._call_seconds.observe(seconds)

    def record_denial(self, status: int) -> None:
        self._denied_requests.labels(str(status)).inc()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCalls:
    """A call handler that counts calls and their duration."""

    handler: CallHandler
    metrics: Metrics
    clock: Clock

    def tools(self) -> Sequence[ToolDescription]:
        return self.handler.tools()

    async def handle(self, call: ToolCall, report_progress: ReportProgress = ignore_progress) -> ToolOutcome:
        started_at, result = self.clock.monotonic(), "CANCELLED"
        try:
            outcome = await self.handler.handle(call, report_progress)
            result = "ok" if outcome.error is None else outcome.error.name
        except BrowserShellError as refused:
            result = refused.code.name
            raise
        finally:
            self.metrics.record_call(result, self.clock.monotonic() - started_at)
        return outcome


def read_metrics_address(text: str) -> Endpoint | None:
    """Parse METRICS_ADDRESS, such as `127.0.0.1:9464`; None for an empty text.

    Raises: ConfigurationInvalid, also for a public address.
    """
    if not text:
        return None
    try:
        endpoint = parse_endpoint(text)
    except ValueError as problem:
        raise ConfigurationInvalid(f"METRICS_ADDRESS: {text[:60]!r} {problem}") from problem
    address = endpoint.address
    if address.is_unspecified or not (address.is_loopback or address.is_private):
        raise ConfigurationInvalid("METRICS_ADDRESS: must be a loopback or private address: metrics have no tokens")
    return endpoint


async def serve_metrics(
    address: Endpoint,
    metrics: Metrics,
    *,
    sessions_open: Callable[[], int],
    on_ready: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve `GET /metrics` until cancelled. Raises: ConfigurationInvalid when the address is taken."""
    metrics.sessions_open.set_function(sessions_open)

    async def answer(client: SocketStream) -> None:
        async with client:
            with anyio.move_on_after(_REQUEST_SECONDS):
                try:
                    await client.send(_response(await _request_line(client), metrics.registry))
                except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    log.debug("metrics_client_disconnected")

    try:
        listener = await anyio.create_tcp_listener(local_host=str(address.address), local_port=address.port)
    except OSError as cause:
        raise ConfigurationInvalid(f"METRICS_ADDRESS: cannot listen there: {cause.strerror}") from cause
    async with listener:
        on_ready(int(listener.extra(SocketAttribute.local_port)))  # noqa: S610  # anyio's, not Django's
        await listener.serve(answer)


async def _request_line(client: SocketStream) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received and len(received) < _MAX_REQUEST_BYTES:
        received += await client.receive()
    return received.partition(b"\r\n")[0]


def _response(request_line: bytes, registry: CollectorRegistry) -> bytes:
    if request_line.split(b" ")[:2] != [b"GET", b"/metrics"]:
        return write_final_response(404, "Not Found", {}, b"")
    headers = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4, "Cache-Control": "no-store"}
    return write_final_response(200, "OK", headers, generate_latest(registry))
