"""The run loop that both profiles share: public listener, health and metrics addresses, signals and shutdown."""

from __future__ import annotations

import gc
import secrets
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
import structlog
from starlette.types import ASGIApp

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import AuditLog, CallHandler
from browser_shell.http.gateway import Gateway, GatewaySettings
from browser_shell.http.routes import parse_trusted_hosts
from browser_shell.http.server import is_loopback, listen_on, serve_listener
from browser_shell.http.tokens import Access, NoAuth, TokenAuthenticator, read_public_key, throwaway_access
from browser_shell.limits.gate import LimitsGate, open_gate
from browser_shell.mcp_server.endpoint import INSTRUCTIONS
from browser_shell.mcp_server.stdio import run_stdio
from browser_shell.ops.health import Probe, serve_health
from browser_shell.ops.metrics import Metrics, read_metrics_address, serve_metrics
from browser_shell.settings import Settings

log = structlog.get_logger()


class SystemClock:
    """The clocks of the machine. Static methods, because one call reads them about thirty times."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)


def new_call_id() -> str:
    return secrets.token_hex(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledServer:
    """The running parts of a profile that HTTP or standard input and output are connected to."""

    pipeline: CallHandler
    audit: AuditLog
    runtime_directory: Path
    """Private to this server. Holds the health socket."""
    probes: Mapping[str, Probe]
    sessions_open: Callable[[], int]
    """For the metrics: browser sessions or running jobs."""
    viewer: Callable[[], ASGIApp] | None = None
    """Builds the live view. Called over HTTP only, because it needs noVNC."""
    instructions: str = INSTRUCTIONS
    job_image: str = ""


Assemble: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[AssembledServer]]
"""The assembly function of a profile: drops root, builds all parts, runs them until its context ends."""


async def serve_over_http(
    settings: Settings, assemble: Assemble, *, access: Access, on_ready: Callable[[int, str], None]
) -> None:
    """Serve MCP over HTTP until a signal arrives. `on_ready` gets the port and the id of the job image.

    Raises: ConfigurationInvalid, and what the assembly raises.
    """
    # Listen before anything starts: a port in use is then reported at once, and a free one stays reserved.
    listener = listen_on(settings.host, settings.port)
    metrics, metrics_address = Metrics(), read_metrics_address(settings.access.metrics_address)
    gateway_settings = GatewaySettings(
        trusted_hosts=parse_trusted_hosts(
            listen=settings.host, hosts=settings.access.public_hosts, origins=settings.access.allowed_origins
        ),
        ticket_seconds=settings.access.ticket_seconds,
        requests_per_second=settings.access.requests_per_second,
        viewing=settings.policy.viewing,
    )

    async def connect(server: AssembledServer) -> None:
        app = Gateway(
            gateway_settings,
            handler=server.pipeline,
            authenticator=access.authenticator,
            viewer=server.viewer() if server.viewer is not None else None,
            audit=server.audit,
            clock=SystemClock(),
            new_id=new_call_id,
            metrics=metrics,
            instructions=server.instructions,
        )
        async with anyio.create_task_group() as operations:
            operations.start_soon(serve_health, server.runtime_directory, server.probes)
            if metrics_address is not None:
                operations.start_soon(
                    partial(serve_metrics, metrics_address, metrics, sessions_open=server.sessions_open)
                )
            await serve_listener(app, listener, on_ready=lambda port: on_ready(port, server.job_image))

    with listener:
        await _run(settings, assemble, connect)


async def serve_over_stdio(settings: Settings, assemble: Assemble) -> None:
    """Serve one client over standard input and output until end of file or a signal.

    Raises: ConfigurationInvalid, and what the assembly raises.
    """

    async def connect(server: AssembledServer) -> None:
        await run_stdio(server.pipeline, new_id=new_call_id, instructions=server.instructions)

    await _run(settings, assemble, connect)


async def _run(settings: Settings, assemble: Assemble, connect: Callable[[AssembledServer], Awaitable[None]]) -> None:
    async with anyio.create_task_group() as foreground:
        foreground.start_soon(cancel_on_signal, foreground.cancel_scope)
        async with assemble(settings) as server:
            # About 100 000 objects live as long as the server. Frozen, they save 40 ms in each full collection.
            gc.collect()
            gc.freeze()
            await connect(server)
        foreground.cancel_scope.cancel()


async def cancel_on_signal(scope: anyio.CancelScope) -> None:
    """Cancel the scope on SIGINT, SIGTERM or SIGHUP."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            log.info("server_stopping", signal=signal.Signals(number).name)
            scope.cancel()
            return


def build_access(settings: Settings) -> Access:
    """Build the check of tokens. Raises: ConfigurationInvalid for an unusable key."""
    wanted, clock = settings.access, SystemClock()
    if wanted.unsafe_no_auth:
        if not is_loopback(settings.host):
            raise ConfigurationInvalid(f"--unsafe-no-auth: not on {settings.host}, only on a loopback address")
        return Access(authenticator=NoAuth())
    if not wanted.jwt_public_key:
        return throwaway_access(clock=clock)
    key = read_public_key(wanted.jwt_public_key, wanted.jwt_algorithm)
    return Access(
        authenticator=TokenAuthenticator(key=key, clock=clock, audience=wanted.jwt_audience, issuer=wanted.jwt_issuer)
    )


def open_limits(settings: Settings) -> AbstractAsyncContextManager[LimitsGate]:
    return open_gate(settings.policy.limits, redis_url=settings.limits_redis, clock=SystemClock(), new_id=new_call_id)


def open_audit(settings: Settings, directory_name: str) -> JsonLinesAudit:
    """Open the audit log of one server in its own directory. Raises: ConfigurationInvalid."""
    directory = settings.state_directory / directory_name
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as cause:
        raise ConfigurationInvalid(f"BROWSER_SHELL_STATE_DIR: {directory}: {cause.strerror}") from cause
    rules = settings.policy.audit
    return JsonLinesAudit(
        path=directory / "audit.jsonl",
        clock=SystemClock(),
        policy_digest=settings.policy.digest(),
        rotate_bytes=rules.rotate_bytes,
        checkpoint_records=rules.checkpoint_records,
        checkpoint_seconds=rules.checkpoint_seconds,
    )
