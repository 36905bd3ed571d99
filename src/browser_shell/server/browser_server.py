"""Builds every part once and runs them together; the only module that knows them all."""

from __future__ import annotations

import gc
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import structlog
from starlette.types import ASGIApp

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.browser.chromium.display import VNC_SOCKET, make_socket_directory
from browser_shell.browser.chromium.runtime_dirs import claimed_layout
from browser_shell.browser.chromium.supervisor import BrowserSupervisor
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver
from browser_shell.browser.sessions import Sessions
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import Clock, Limits
from browser_shell.egress.denial_audit import DenialRecords
from browser_shell.hooks.chain import installed_hooks, standard_chain
from browser_shell.http.front import FrontSettings, build_front
from browser_shell.http.routes import neighbours
from browser_shell.http.server import is_loopback, listen_on, serve_listener
from browser_shell.http.tokens import Access, NoAuth, access_by_key, throwaway_access
from browser_shell.limits.gate import open_gate
from browser_shell.mcp_server.stdio import run_stdio
from browser_shell.ops.health import serve_health
from browser_shell.ops.metrics import Metrics, read_metrics_address, serve_metrics
from browser_shell.pipeline import Pipeline
from browser_shell.process.accounts import account_to_drop_to, forbid_tracing, give_up_root, transfer_directory
from browser_shell.process.orphans import adopt_orphans, reap_adopted, use_pidfd_child_watcher
from browser_shell.runner import ExecutionRunner
from browser_shell.server.browser_parts import build_browser, check_programs
from browser_shell.server.health_probes import health_probes
from browser_shell.settings import JOBS_DIRECTORY, Settings
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from browser_shell.viewer.activity import RecentActivity
from browser_shell.viewer.app import build_viewer_app
from browser_shell.viewer.takeover import Takeover

log = structlog.get_logger()

_FIRST_START_SECONDS = 25.0
_CLOSE_SECONDS = 3.0
_COLLECT_SECONDS = 1.0


class SystemClock:
    """The machine's clocks, asked some thirty times a call."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)


def new_call_id() -> str:
    return secrets.token_hex(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    supervisor: BrowserSupervisor
    sessions: Sessions
    driver: AgentBrowserDriver
    audit: JsonLinesAudit
    denial_records: DenialRecords
    pipeline: Pipeline
    takeover: Takeover
    activity: RecentActivity
    display_socket: Path
    runtime: Path


def access_of(settings: Settings) -> Access:
    """Who may call. Raises: ConfigurationInvalid, before anything else has begun."""
    wanted, clock = settings.access, SystemClock()
    if wanted.unsafe_no_auth:
        if not is_loopback(settings.host):
            raise ConfigurationInvalid(f"--unsafe-no-auth: not on {settings.host}, only on a loopback address")
        return Access(authenticator=NoAuth())
    if not wanted.jwt_public_key:
        return throwaway_access(clock=clock)
    return access_by_key(
        wanted.jwt_public_key,
        algorithm=wanted.jwt_algorithm,
        audience=wanted.jwt_audience,
        issuer=wanted.jwt_issuer,
        clock=clock,
    )


async def serve(settings: Settings, *, access: Access, on_ready: Callable[[int], None]) -> None:
    """Serves MCP over HTTP until a signal. Raises: ConfigurationInvalid, BrowserUnavailable."""
    # Before anything starts, so that a taken port is said at once, and a free one stays ours.
    listener = listen_on(settings.host, settings.port)
    metrics, metrics_address = Metrics(), read_metrics_address(settings.access.metrics_address)
    front_settings = front_settings_of(settings)

    async def front(parts: _Parts) -> None:
        app = build_front(
            front_settings,
            handler=parts.pipeline,
            callers=access.authenticator,
            viewer=_live_view(settings, parts),
            audit=parts.pipeline.audit,
            clock=parts.pipeline.clock,
            new_id=new_call_id,
            metrics=metrics,
        )
        async with anyio.create_task_group() as beside:
            beside.start_soon(
                serve_health, parts.runtime, health_probes(settings, parts.supervisor, parts.display_socket)
            )
            if metrics_address is not None:
                beside.start_soon(partial(serve_metrics, metrics_address, metrics, sessions_open=parts.sessions.count))
            await serve_listener(app, listener, on_ready=on_ready)

    with listener:
        await _run(settings, front)


def front_settings_of(settings: Settings) -> FrontSettings:
    """Raises: ConfigurationInvalid."""
    return FrontSettings(
        neighbours=neighbours(
            listen=settings.host, hosts=settings.access.public_hosts, origins=settings.access.allowed_origins
        ),
        ticket_seconds=settings.access.ticket_seconds,
        requests_per_second=settings.access.requests_per_second,
        viewing=settings.policy.viewing,
    )


async def serve_stdio(settings: Settings) -> None:
    """Serves one client over standard input and output. Raises: ConfigurationInvalid, BrowserUnavailable."""

    async def front(parts: _Parts) -> None:
        await run_stdio(parts.pipeline, new_id=new_call_id)

    await _run(settings, front)


async def _run(settings: Settings, front: Callable[[_Parts], Awaitable[None]]) -> None:
    adopt_orphans()
    use_pidfd_child_watcher()
    async with (
        open_gate(
            settings.policy.limits, redis_url=settings.limits_redis, clock=SystemClock(), new_id=new_call_id
        ) as limits,
        _parts(settings, limits) as parts,
        anyio.create_task_group() as foreground,
    ):
        foreground.start_soon(cancel_on_signal, foreground.cancel_scope)
        async with _browser_running(parts):
            # What is here now stays: 100 000 objects that no full collection needs to look at, for 40 ms each time.
            gc.collect()
            gc.freeze()
            await front(parts)
        foreground.cancel_scope.cancel()


async def cancel_on_signal(scope: anyio.CancelScope) -> None:
    """Ends the scope when somebody asks the server to stop."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            log.info("stopping", signal=signal.Signals(number).name)
            scope.cancel()
            return


async def _collect_adopted() -> None:
    while True:
        await anyio.sleep(_COLLECT_SECONDS)
        reap_adopted()


@asynccontextmanager
async def _browser_running(parts: _Parts) -> AsyncIterator[None]:
    async with anyio.create_task_group() as background:
        background.start_soon(parts.supervisor.run)
        background.start_soon(parts.sessions.expire_idle)
        background.start_soon(parts.driver.keep_spares)
        background.start_soon(parts.audit.tend)
        background.start_soon(parts.denial_records.tend)
        background.start_soon(_collect_adopted)
        try:
            await parts.supervisor.connection(seconds=_FIRST_START_SECONDS)
            yield
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await parts.sessions.close_all()
            background.cancel_scope.cancel()


@asynccontextmanager
async def _parts(settings: Settings, limits: Limits) -> AsyncIterator[_Parts]:
    with ExitStack() as held:
        check_programs(settings)
        _stop_being_root(settings)
        port = settings.unsafe_attach_port or settings.devtools_port or _free_port()
        layout = held.enter_context(claimed_layout(settings.runtime_directory, port, None))
        clock = SystemClock()
        audit = held.enter_context(open_audit(settings, str(port), clock))
        takeover = Takeover(clock=clock, audit=audit, idle_seconds=settings.policy.viewing.control_idle_seconds)
        activity = RecentActivity()
        browser = build_browser(
            replace(settings, devtools_port=port),
            layout=layout,
            account=None,
            clock=clock,
            audit=audit,
            human=takeover,
            activity=activity,
            held=held,
        )
        yield _Parts(
            supervisor=browser.supervisor,
            sessions=browser.sessions,
            driver=browser.driver,
            audit=audit,
            denial_records=browser.denial_records,
            pipeline=Pipeline(
                registry=ToolRegistry([BrowserShellTool(allowed=browser.rules.commands)]),
                limits=limits,
                hooks=standard_chain(
                    max_output_characters=settings.policy.output.max_characters,
                    redact=settings.policy.output.redact,
                    plugins=installed_hooks(),
                ),
                policy=browser.rules,
                resolver=browser.resolver,
                audit=audit,
                runner=ExecutionRunner(browser=browser.sandbox),
                human=takeover,
                activity=activity,
                clock=clock,
            ),
            takeover=takeover,
            activity=activity,
            display_socket=layout.display / VNC_SOCKET,
            runtime=layout.root,
        )


def _stop_being_root(settings: Settings) -> None:
    """Everything that root is needed for happens here, before anything listens to anybody."""
    account = account_to_drop_to(settings.account)
    if account is None:
        forbid_tracing()
        return
    for directory in (settings.runtime_directory, settings.state_directory):
        transfer_directory(directory, account, excluded=(JOBS_DIRECTORY,))
    make_socket_directory()
    give_up_root(account)


def _live_view(settings: Settings, parts: _Parts) -> ASGIApp | None:
    if settings.unsafe_attach_port is not None:
        return None  # Somebody else's browser is on somebody else's display.
    return build_viewer_app(
        novnc=settings.novnc,
        display_socket=parts.display_socket,
        takeover=parts.takeover,
        activity=parts.activity,
        windows=parts.sessions,
        audit=parts.pipeline.audit,
        clock=parts.pipeline.clock,
        new_id=new_call_id,
    )


def open_audit(settings: Settings, directory: str, clock: Clock) -> JsonLinesAudit:
    """The log of one server, in a directory of its own. Raises: ConfigurationInvalid."""
    rules = settings.policy.audit
    return JsonLinesAudit(
        path=_audit_path(settings, directory),
        clock=clock,
        policy_digest=settings.policy.digest(),
        rotate_bytes=rules.rotate_bytes,
        checkpoint_records=rules.checkpoint_records,
        checkpoint_seconds=rules.checkpoint_seconds,
    )


def _audit_path(settings: Settings, name: str) -> Path:
    directory = settings.state_directory / name
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as cause:
        raise ConfigurationInvalid(f"BROWSER_SHELL_STATE_DIR: {directory}: {cause.strerror}") from cause
    return directory / "audit.jsonl"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
