"""Builds every part once and runs them together; the only module that knows them all."""

from __future__ import annotations

import hashlib
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import structlog

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.browser.chromium import ChromiumSettings
from browser_shell.browser.display import WINDOW_MANAGER, XVNC, DisplaySettings
from browser_shell.browser.layout import RuntimeLayout, claimed_layout, end_leftover_services
from browser_shell.browser.sessions import SessionLimits, Sessions
from browser_shell.browser.supervisor import BrowserSupervisor
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.egress.resolver import SystemResolver
from browser_shell.execution.browser_sandbox import ArtifactLimits, BrowserSandbox
from browser_shell.execution.driver import AgentBrowserDriver, DriverSettings, write_driver_files
from browser_shell.hooks.plugins import installed_hooks
from browser_shell.hooks.standard import standard_chain
from browser_shell.http.gateway import gateway, serve_http
from browser_shell.http.mcp_endpoint import McpEndpoint, loopback_hosts, loopback_origins
from browser_shell.http.stdio import run_stdio
from browser_shell.pipeline import Pipeline
from browser_shell.policy.rules import UrlPolicy
from browser_shell.process.account import Account, account_to_drop_to
from browser_shell.process.orphans import adopt_orphans, reap_adopted
from browser_shell.process.spawn import SETPRIV
from browser_shell.settings import Settings, driver_digest
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry

log = structlog.get_logger()

_FIRST_START_SECONDS = 25.0
_CLOSE_SECONDS = 3.0
_COLLECT_SECONDS = 1.0


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


def new_call_id() -> str:
    return secrets.token_hex(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    supervisor: BrowserSupervisor
    sessions: Sessions
    pipeline: Pipeline


async def serve(settings: Settings, *, on_ready: Callable[[int], None]) -> None:
    """Serves MCP over HTTP until a signal. Raises: ConfigurationInvalid, BrowserUnavailable."""
    port = settings.port or _free_port()

    async def front(pipeline: Pipeline) -> None:
        endpoint = McpEndpoint(
            pipeline,
            new_id=new_call_id,
            allowed_hosts=loopback_hosts(),
            allowed_origins=loopback_origins(port),
        )
        await serve_http(gateway(endpoint), host=settings.host, port=port, on_ready=on_ready)

    await _run(settings, front)


async def serve_stdio(settings: Settings) -> None:
    """Serves one client over standard input and output. Raises: ConfigurationInvalid, BrowserUnavailable."""

    async def front(pipeline: Pipeline) -> None:
        await run_stdio(pipeline, new_id=new_call_id)

    await _run(settings, front)


async def _run(settings: Settings, front: Callable[[Pipeline], Awaitable[None]]) -> None:
    adopt_orphans()
    async with _parts(settings) as parts, anyio.create_task_group() as foreground:
        foreground.start_soon(_cancel_on_signal, foreground.cancel_scope)
        async with _browser_running(parts):
            await front(parts.pipeline)
        foreground.cancel_scope.cancel()


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
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
        background.start_soon(_collect_adopted)
        try:
            await parts.supervisor.connection(seconds=_FIRST_START_SECONDS)
            yield
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await parts.sessions.close_all()
            background.cancel_scope.cancel()


@asynccontextmanager
async def _parts(settings: Settings) -> AsyncIterator[_Parts]:
    with ExitStack() as held:
        account = account_to_drop_to(settings.account)
        _check_programs(settings)
        port = settings.unsafe_attach_port or settings.devtools_port or _free_port()
        layout = held.enter_context(claimed_layout(settings.runtime_directory, port, account))
        clock = SystemClock()
        audit = held.enter_context(JsonLinesAudit(path=_audit_path(settings, port), clock=clock))
        yield _build(replace(settings, devtools_port=port), layout, account, clock, audit)


def _build(
    settings: Settings, layout: RuntimeLayout, account: Account | None, clock: SystemClock, audit: JsonLinesAudit
) -> _Parts:
    policy = settings.policy
    driver = _driver(settings, layout, account)
    tabs = TabTracker()
    supervisor = _supervisor(settings, layout, account, tabs)
    for name in end_leftover_services(layout):
        log.warning("leftover_ended", process=name)
    ended = driver.end_leftovers()
    if ended:
        log.warning("leftover_ended", process="agent-browser", count=ended)
    sessions = Sessions(
        supervisor=supervisor,
        tabs=tabs,
        driver=driver,
        clock=clock,
        limits=SessionLimits(max_sessions=policy.sessions.max, idle_seconds=policy.sessions.idle_seconds),
        directory=layout.artifacts,
        account=account,
    )
    rules = UrlPolicy(policy)
    pipeline = Pipeline(
        registry=ToolRegistry([BrowserShellTool(allowed=rules.commands)]),
        hooks=standard_chain(max_output_characters=policy.output.max_characters, plugins=installed_hooks()),
        policy=rules,
        resolver=SystemResolver(),
        audit=audit,
        sandbox=BrowserSandbox(
            sessions=sessions,
            driver=driver,
            clock=clock,
            limits=ArtifactLimits(
                screenshot_format=policy.output.screenshot_format,
                max_image_bytes=policy.output.max_image_bytes,
                max_pdf_bytes=policy.output.max_pdf_bytes,
            ),
        ),
        clock=clock,
    )
    return _Parts(supervisor=supervisor, sessions=sessions, pipeline=pipeline)


def _driver(settings: Settings, layout: RuntimeLayout, account: Account | None) -> AgentBrowserDriver:
    driver_settings = DriverSettings(
        program=settings.driver,
        sockets=layout.sockets,
        home=layout.driver_home,
        config=layout.config / "agent-browser.json",
        action_policy=layout.config / "action-policy.json",
        devtools_port=settings.devtools_port,
        screenshot_format=settings.policy.output.screenshot_format,
        screenshot_quality=settings.policy.output.screenshot_quality,
        account=account,
    )
    write_driver_files(driver_settings)
    return AgentBrowserDriver(driver_settings)


def _supervisor(
    settings: Settings, layout: RuntimeLayout, account: Account | None, tabs: TabTracker
) -> BrowserSupervisor:
    display = DisplaySettings(
        directory=layout.display,
        marks=layout.marks,
        logs=layout.logs,
        width=settings.display_width,
        height=settings.display_height,
        account=account,
    )
    chromium = ChromiumSettings(
        program=settings.chromium,
        profile=layout.profile,
        home=layout.chromium_home,
        marks=layout.marks,
        logs=layout.logs,
        port=settings.devtools_port,
        width=settings.display_width,
        height=settings.display_height,
        resolver_rules=_resolver_rules(settings),
        timezone=settings.timezone,
        account=account,
    )
    return BrowserSupervisor(
        display=display, chromium=chromium, tabs=tabs, unsafe_attach_port=settings.unsafe_attach_port
    )


def _resolver_rules(settings: Settings) -> str:
    """`unsafe_resolve` in Chromium's words. Hosts and addresses were checked when the policy was read."""
    return ",".join(f"MAP {host} {endpoint}" for host, endpoint in sorted(settings.policy.open.unsafe_resolve.items()))


def _check_programs(settings: Settings) -> None:
    needed = [Path(SETPRIV), settings.driver]
    if settings.unsafe_attach_port is None:
        needed += [settings.chromium, XVNC, WINDOW_MANAGER]
    missing = [str(program) for program in needed if not program.is_file()]
    if missing:
        raise ConfigurationInvalid(f"not installed: {', '.join(missing)}. Run: make install")
    if hashlib.sha256(settings.driver.read_bytes()).hexdigest() != driver_digest():
        raise ConfigurationInvalid(f"{settings.driver}: not the pinned agent-browser (wrong digest). Run: make install")


def _audit_path(settings: Settings, port: int) -> Path:
    directory = settings.state_directory / str(port)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as cause:
        raise ConfigurationInvalid(f"BROWSER_SHELL_STATE_DIR: {directory}: {cause.strerror}") from cause
    return directory / "audit.jsonl"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
