"""Counters for operators, in the text form that Prometheus reads. They name no caller and no page."""

from __future__ import annotations

import ipaddress
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketStream

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import BrowserShellError, ConfigurationInvalid
from browser_shell.core.ports import CallHandler, Clock, ReportProgress, ToolDescription, ignore_progress
from browser_shell.core.results import ToolOutcome

BUCKETS_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_REQUEST_SECONDS = 5
_MAX_REQUEST_BYTES = 4096

log = structlog.get_logger()


@dataclass(slots=True)
class Metrics:
    """What was counted since the start."""

    calls: Counter[str] = field(default_factory=Counter)
    """By `ok` or the code word of the error."""
    denials: Counter[int] = field(default_factory=Counter)
    """Requests that the gateway refused, by status."""
    _buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    _seconds: float = 0.0

    def called(self, result: str, seconds: float) -> None:
        self.calls[result] += 1
        self._buckets[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        self._seconds += seconds

    def denied(self, status: int) -> None:
        self.denials[status] += 1

    def text(self, *, sessions_open: int) -> str:
        lines = ["# TYPE browser_shell_calls_total counter"]
        lines += [f'browser_shell_calls_total{{result="{name}"}} {count}' for name, count in sorted(self.calls.items())]
        lines.append("# TYPE browser_shell_call_duration_seconds histogram")
        below = 0
        for limit, count in zip((*map(str, BUCKETS_SECONDS), "+Inf"), self._buckets, strict=True):
            below += count
            lines.append(f'browser_shell_call_duration_seconds_bucket{{le="{limit}"}} {below}')
        lines.append(f"browser_shell_call_duration_seconds_sum {self._seconds:.6f}")
        lines.append(f"browser_shell_call_duration_seconds_count {below}")
        lines.append("# TYPE browser_shell_denied_requests_total counter")
        lines += [
            f'browser_shell_denied_requests_total{{status="{status}"}} {count}'
            for status, count in sorted(self.denials.items())
        ]
        lines += ["# TYPE browser_shell_sessions_open gauge", f"browser_shell_sessions_open {sessions_open}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCalls:
    """A handler whose calls are counted."""

    handler: CallHandler
    metrics: Metrics
    clock: Clock

    def tools(self) -> Sequence[ToolDescription]:
        return self.handler.tools()

    async def handle(self, call: ToolCall, tell: ReportProgress = ignore_progress) -> ToolOutcome:
        began, result = self.clock.monotonic(), "CANCELLED"
        try:
            outcome = await self.handler.handle(call, tell)
            result = "ok" if outcome.error is None else outcome.error.name
        except BrowserShellError as refused:
            result = refused.code.name
            raise
        finally:
            self.metrics.called(result, self.clock.monotonic() - began)
        return outcome


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    host: str
    port: int


def read_metrics_address(text: str) -> MetricsAddress | None:
    """`127.0.0.1:9464`; None for ''. Raises: ConfigurationInvalid, also for an address that strangers could reach."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError as cause:
        raise ConfigurationInvalid(f"METRICS_ADDRESS: {text[:60]!r} is not address:port") from cause
    if not (port.isascii() and port.isdigit() and 0 <= int(port) <= 65535):
        raise ConfigurationInvalid(f"METRICS_ADDRESS: {text[:60]!r} is not address:port")
    if address.is_unspecified or not (address.is_loopback or address.is_private):
        raise ConfigurationInvalid("METRICS_ADDRESS: must be a loopback or private address: metrics have no tokens")
    return MetricsAddress(str(address), int(port))


async def serve_metrics(
    address: MetricsAddress,
    metrics: Metrics,
    *,
    sessions_open: Callable[[], int],
    on_ready: Callable[[int], None] = lambda port: None,
) -> None:
    """Serves `GET /metrics` until cancelled. Raises: ConfigurationInvalid when the address is taken."""

    async def answer(client: SocketStream) -> None:
        async with client:
            with anyio.move_on_after(_REQUEST_SECONDS):
                try:
                    asked = await _request_line(client)
                    await client.send(_reply(asked, metrics, sessions_open))
                except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    log.debug("metrics_reader_left")

    try:
        listener = await anyio.create_tcp_listener(local_host=address.host, local_port=address.port)
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


def _reply(asked: bytes, metrics: Metrics, sessions_open: Callable[[], int]) -> bytes:
    if asked.split(b" ")[:2] != [b"GET", b"/metrics"]:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    body = metrics.text(sessions_open=sessions_open()).encode()
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
