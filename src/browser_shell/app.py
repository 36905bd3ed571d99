"""Builds every part once and runs them together; the only module that knows them all."""

from __future__ import annotations

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
from browser_shell.browser.layout import claimed_layout
from browser_shell.browser.sessions import Sessions
from browser_shell.browser.supervisor import BrowserSupervisor
from browser_shell.browser.takeover import CONTROL_IDLE_SECONDS, Takeover
from browser_shell.browser_parts import build_browser, check_programs
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.hooks.plugins import installed_hooks
from browser_shell.hooks.standard import standard_chain
from browser_shell.http.gateway import gateway, serve_http
from browser_shell.http.mcp_endpoint import McpEndpoint, loopback_hosts, loopback_origins
from browser_shell.http.stdio import run_stdio
from browser_shell.pipeline import Pipeline
from browser_shell.process.account import account_to_drop_to
from browser_shell.process.orphans import adopt_orphans, reap_adopted
from browser_shell.settings import Settings
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from browser_shell.viewer.activity import RecentActivity

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
        check_programs(settings)
        port = settings.unsafe_attach_port or settings.devtools_port or _free_port()
        layout = held.enter_context(claimed_layout(settings.runtime_directory, port, account))
        clock = SystemClock()
        audit = held.enter_context(JsonLinesAudit(path=_audit_path(settings, port), clock=clock))
        takeover = Takeover(clock=clock, audit=audit, idle_seconds=CONTROL_IDLE_SECONDS)
        activity = RecentActivity()
        browser = build_browser(
            replace(settings, devtools_port=port),
            layout=layout,
            account=account,
            clock=clock,
            audit=audit,
            human=takeover,
            held=held,
        )
        yield _Parts(
            supervisor=browser.supervisor,
            sessions=browser.sessions,
            pipeline=Pipeline(
                registry=ToolRegistry([BrowserShellTool(allowed=browser.rules.commands)]),
                hooks=standard_chain(
                    max_output_characters=settings.policy.output.max_characters,
                    redact=settings.policy.output.redact,
                    plugins=installed_hooks(),
                ),
                policy=browser.rules,
                resolver=browser.resolver,
                audit=audit,
                sandbox=browser.sandbox,
                human=takeover,
                activity=activity,
                clock=clock,
            ),
        )


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
