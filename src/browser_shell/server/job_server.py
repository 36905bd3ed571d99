"""Builds and runs the write profile: the pipeline and gateway of the browser's, without browser, display and jail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import structlog

from browser_shell.core.plans import ContainerJob
from browser_shell.core.ports import Limits, Tool
from browser_shell.egress.resolver import SystemResolver
from browser_shell.hooks.chain import installed_job_hooks, job_chain
from browser_shell.http.front import build_front
from browser_shell.http.server import listen_on, serve_listener
from browser_shell.http.tokens import Access
from browser_shell.limits.gate import open_gate
from browser_shell.mcp_server.stdio import run_stdio
from browser_shell.ops.health import serve_health
from browser_shell.ops.metrics import Metrics, read_metrics_address, serve_metrics
from browser_shell.pipeline import Pipeline
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.job_rules import JobPolicy
from browser_shell.process.accounts import make_private_directory
from browser_shell.runner import ExecutionRunner
from browser_shell.server.browser_server import (
    SystemClock,
    cancel_on_signal,
    front_settings_of,
    new_call_id,
    open_audit,
)
from browser_shell.server.job_parts import JobParts, build_jobs, open_workspace, stop_being_root
from browser_shell.settings import JOBS_DIRECTORY, Settings
from browser_shell.tools.registry import ToolRegistry
from browser_shell.tools.run_playwright import RunPlaywrightTool
from browser_shell.tools.run_pytest import RunPytestTool
from browser_shell.viewer.activity import RecentActivity

INSTRUCTIONS = (
    "Two tools run tests of one workspace, each call in a fresh container without network: run_pytest and "
    "run_playwright. passed and exit_code say how it went, failures why; output and files are kept under run_id. Tests "
    "that fail are a result; a timeout or a broken limit is an error that names the run."
)

log = structlog.get_logger()


class NobodyWatches:
    """There is no display, so there is nobody to take it over."""

    def seconds_left(self) -> float:
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    jobs: JobParts
    pipeline: Pipeline[ContainerJob]


async def serve_jobs(settings: Settings, *, access: Access, on_ready: Callable[[int, str], None]) -> None:
    """Serves MCP over HTTP until a signal. Raises: ConfigurationInvalid, SandboxUnavailable."""
    listener = listen_on(settings.host, settings.port)
    metrics, metrics_address = Metrics(), read_metrics_address(settings.access.metrics_address)
    front_settings = front_settings_of(settings)

    async def front(running: _Running) -> None:
        app = build_front(
            front_settings,
            handler=running.pipeline,
            callers=access.authenticator,
            viewer=None,
            audit=running.pipeline.audit,
            clock=running.pipeline.clock,
            new_id=new_call_id,
            metrics=metrics,
            instructions=INSTRUCTIONS,
        )
        runtime = make_private_directory(settings.runtime_directory / JOBS_DIRECTORY, owner=None)

        async def engine() -> None:
            await running.jobs.engine.image_id(running.jobs.image)

        async with anyio.create_task_group() as beside:
            beside.start_soon(serve_health, runtime, {"engine": engine})
            if metrics_address is not None:
                jobs_running = running.jobs.sandbox.store.active
                beside.start_soon(
                    partial(serve_metrics, metrics_address, metrics, sessions_open=lambda: len(jobs_running))
                )
            await serve_listener(app, listener, on_ready=lambda port: on_ready(port, running.jobs.image))

    with listener:
        await _run(settings, front)


async def serve_jobs_stdio(settings: Settings) -> None:
    """Serves one client over standard input and output. Raises: ConfigurationInvalid, SandboxUnavailable."""

    async def front(running: _Running) -> None:
        await run_stdio(running.pipeline, new_id=new_call_id, instructions=INSTRUCTIONS)

    await _run(settings, front)


async def _run(settings: Settings, front: Callable[[_Running], Awaitable[None]]) -> None:
    open_workspace(settings)
    stop_being_root(settings)
    settings.runtime_directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    async with anyio.create_task_group() as foreground:
        foreground.start_soon(cancel_on_signal, foreground.cancel_scope)
        async with (
            open_gate(
                settings.policy.limits, redis_url=settings.limits_redis, clock=SystemClock(), new_id=new_call_id
            ) as limits,
            _running(settings, limits) as running,
            anyio.create_task_group() as background,
        ):
            background.start_soon(running.jobs.upkeep.keep_up)
            await front(running)
            background.cancel_scope.cancel()
        foreground.cancel_scope.cancel()


@asynccontextmanager
async def _running(settings: Settings, limits: Limits) -> AsyncIterator[_Running]:
    clock = SystemClock()
    with ExitStack() as held:
        audit = held.enter_context(open_audit(settings, JOBS_DIRECTORY, clock))
        jobs = await build_jobs(settings, clock=clock, audit=audit, held=held)
        log.info("jobs_image", named=settings.policy.sandbox.image, id=jobs.image)
        await jobs.upkeep.begin()
        policy = JobPolicy(settings.policy)
        pipeline: Pipeline[ContainerJob] = Pipeline(
            registry=ToolRegistry(job_tools(settings.policy, policy.tools)),
            limits=limits,
            hooks=job_chain(
                max_output_characters=settings.policy.output.max_characters,
                redact=settings.policy.output.redact,
                plugins=installed_job_hooks(),
            ),
            policy=policy,
            resolver=SystemResolver(),
            audit=audit,
            runner=ExecutionRunner(containers=jobs.sandbox),
            human=NobodyWatches(),
            activity=RecentActivity(),
            clock=clock,
        )
        async with anyio.create_task_group() as tending:
            tending.start_soon(audit.tend)
            yield _Running(jobs=jobs, pipeline=pipeline)
            tending.cancel_scope.cancel()


def job_tools(document: PolicyDocument, allowed: frozenset[str]) -> list[Tool[ContainerJob]]:
    """The tools of the write profile that the policy left. There are two, and no way to a third."""
    seconds = document.sandbox.timeout_seconds
    tools: list[Tool[ContainerJob]] = [
        RunPlaywrightTool(kept=document.playwright, max_seconds=seconds),
        RunPytestTool(max_seconds=seconds),
    ]
    return [tool for tool in tools if tool.name in allowed]
