"""Builds and runs the write profile: test jobs in containers, without browser, display and jail."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import structlog

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.plans import ContainerJob
from browser_shell.core.ports import Limits
from browser_shell.egress.resolver import SystemResolver
from browser_shell.hooks.chain import installed_job_hooks, job_chain
from browser_shell.http.front import build_front
from browser_shell.http.server import listen_on, serve_listener
from browser_shell.http.tokens import Access
from browser_shell.jobs.containers.engine import DisposableContainers, ServerLock
from browser_shell.jobs.run_closing import RunCloser
from browser_shell.jobs.run_store import RunStore
from browser_shell.jobs.sandbox import ContainerSandbox
from browser_shell.jobs.upkeep import JobUpkeep
from browser_shell.jobs.workspace import Workspace
from browser_shell.limits.gate import open_gate
from browser_shell.mcp_server.stdio import run_stdio
from browser_shell.ops.health import serve_health
from browser_shell.ops.metrics import Metrics, read_metrics_address, serve_metrics
from browser_shell.pipeline import Pipeline
from browser_shell.policy.job_rules import JobPolicy
from browser_shell.process.accounts import (
    account_to_drop_to,
    claim_directory,
    give_up_root,
    group_for_socket,
    make_private_directory,
)
from browser_shell.runner import ExecutionRunner
from browser_shell.server.browser_server import (
    SystemClock,
    cancel_on_signal,
    front_settings_of,
    new_call_id,
    open_audit,
)
from browser_shell.settings import JOBS_DIRECTORY, Settings
from browser_shell.tools.job_tools import job_tools
from browser_shell.tools.registry import ToolRegistry
from browser_shell.viewer.activity import RecentActivity

INSTRUCTIONS = (
    "Two tools run tests of one workspace, each call in a fresh container without network: run_pytest and "
    "run_playwright. passed and exit_code give the result, failures the reasons; output and files are kept under "
    "run_id. Tests that fail are a result; a timeout or a broken limit is an error that names the run."
)
_LOCKS_NAME = "locks"
_SOCKETS = {"docker": Path("/var/run/docker.sock"), "podman": Path("/run/podman/podman.sock")}
_SCHEME = "unix://"

log = structlog.get_logger()


class NoHumanControl:
    """A HumanControl for a server without a display."""

    def seconds_left(self) -> float:
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobServer:
    engine: DisposableContainers
    image: str
    store: RunStore
    upkeep: JobUpkeep
    pipeline: Pipeline[ContainerJob]


async def serve_jobs(settings: Settings, *, access: Access, on_ready: Callable[[int, str], None]) -> None:
    """Serve MCP over HTTP until a signal. Raises: ConfigurationInvalid, SandboxUnavailable."""
    listener = listen_on(settings.host, settings.port)
    metrics, metrics_address = Metrics(), read_metrics_address(settings.access.metrics_address)
    front_settings = front_settings_of(settings)

    async def front(server: _JobServer) -> None:
        app = build_front(
            front_settings,
            handler=server.pipeline,
            callers=access.authenticator,
            viewer=None,
            audit=server.pipeline.audit,
            clock=server.pipeline.clock,
            new_id=new_call_id,
            metrics=metrics,
            instructions=INSTRUCTIONS,
        )
        runtime = make_private_directory(settings.runtime_directory / JOBS_DIRECTORY, owner=None)

        async def probe_engine() -> None:
            await server.engine.image_id(server.image)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_health, runtime, {"engine": probe_engine})
            if metrics_address is not None:
                tasks.start_soon(
                    partial(serve_metrics, metrics_address, metrics, sessions_open=lambda: len(server.store.active))
                )
            await serve_listener(app, listener, on_ready=lambda port: on_ready(port, server.image))

    with listener:
        await _run(settings, front)


async def serve_jobs_stdio(settings: Settings) -> None:
    """Serve one client over standard input and output. Raises: ConfigurationInvalid, SandboxUnavailable."""

    async def front(server: _JobServer) -> None:
        await run_stdio(server.pipeline, new_id=new_call_id, instructions=INSTRUCTIONS)

    await _run(settings, front)


async def _run(settings: Settings, front: Callable[[_JobServer], Awaitable[None]]) -> None:
    open_workspace(settings)  # Again below: it must also be accessible without root.
    _drop_root(settings)
    settings.runtime_directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    async with anyio.create_task_group() as foreground:
        foreground.start_soon(cancel_on_signal, foreground.cancel_scope)
        async with (
            open_gate(
                settings.policy.limits, redis_url=settings.limits_redis, clock=SystemClock(), new_id=new_call_id
            ) as limits,
            _job_server(settings, limits) as server,
        ):
            await front(server)
        foreground.cancel_scope.cancel()


@asynccontextmanager
async def _job_server(settings: Settings, limits: Limits) -> AsyncIterator[_JobServer]:
    """Build every part of the profile and keep it running. Raises: ConfigurationInvalid, SandboxUnavailable."""
    workspace = open_workspace(settings)
    clock, document, rules = SystemClock(), settings.policy, settings.policy.sandbox
    with ExitStack() as resources:
        audit = resources.enter_context(open_audit(settings, JOBS_DIRECTORY, clock))
        lock = ServerLock(settings.state_directory / JOBS_DIRECTORY / _LOCKS_NAME, secrets.token_hex(8))
        lock.acquire()
        resources.callback(lock.release)
        engine = DisposableContainers(address=engine_address(settings), lock=lock, clock=clock)
        image = await engine.image_id(rules.image)
        log.info("job_image_resolved", named=rules.image, id=image)
        settings.jobs.artifacts.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = RunStore(root=settings.jobs.artifacts)
        closer = RunCloser(store=store, audit=audit)
        sandbox = ContainerSandbox(
            engine=engine,
            image=image,
            workspace=workspace,
            store=store,
            closer=closer,
            rules=rules,
            policy_digest=document.digest(),
            audit=audit,
            clock=clock,
        )
        upkeep = JobUpkeep(
            engine=engine, store=store, closer=closer, retention=rules.retention, audit=audit, clock=clock
        )
        policy = JobPolicy(document)
        pipeline: Pipeline[ContainerJob] = Pipeline(
            registry=ToolRegistry(job_tools(document, policy.tools)),
            limits=limits,
            hooks=job_chain(
                max_output_characters=document.output.max_characters,
                redact=document.output.redact,
                plugins=installed_job_hooks(),
            ),
            policy=policy,
            resolver=SystemResolver(),
            audit=audit,
            runner=ExecutionRunner(containers=sandbox),
            human=NoHumanControl(),
            activity=RecentActivity(),
            clock=clock,
        )
        await upkeep.begin()
        async with anyio.create_task_group() as background:
            background.start_soon(audit.tend)
            background.start_soon(upkeep.keep_up)
            yield _JobServer(engine=engine, image=image, store=store, upkeep=upkeep, pipeline=pipeline)
            background.cancel_scope.cancel()


def open_workspace(settings: Settings) -> Workspace:
    """Check the workspace directory. Raises: ConfigurationInvalid for a directory that jobs must not see."""
    directory = settings.jobs.workspace
    if directory is None:
        raise ConfigurationInvalid("BROWSER_SHELL_WORKSPACE: must name the directory whose tests are run (--workspace)")
    root = directory.resolve()
    if not root.is_dir() or root == Path("/"):
        raise ConfigurationInvalid(f"BROWSER_SHELL_WORKSPACE: {directory} must be a directory, and not /")
    roots = settings.policy.sandbox.workspace_roots
    if roots is not None and not any(root.is_relative_to(Path(allowed).resolve()) for allowed in roots):
        raise ConfigurationInvalid(
            f"BROWSER_SHELL_WORKSPACE: {root} is in none of the policy's sandbox.workspace_roots"
        )
    private = (settings.state_directory, settings.jobs.artifacts, settings.runtime_directory, engine_socket(settings))
    for path in private:
        if path.resolve().is_relative_to(root):
            raise ConfigurationInvalid(f"BROWSER_SHELL_WORKSPACE: {root} holds {path}, which jobs must not see")
    return Workspace(root=root)


def engine_address(settings: Settings) -> str:
    engine = settings.policy.sandbox.engine
    socket = _SOCKETS[engine]
    if engine == "podman" and os.geteuid() != 0:
        socket = Path(f"/run/user/{os.geteuid()}/podman/podman.sock")
    return settings.jobs.engine_address or f"{_SCHEME}{socket}"


def engine_socket(settings: Settings) -> Path:
    return Path(engine_address(settings).removeprefix(_SCHEME))


def _drop_root(settings: Settings) -> None:
    """Claim the directories and give up root. Only the group of the engine's socket is kept.

    Raises: ConfigurationInvalid.
    """
    account = account_to_drop_to(settings.account)
    if account is None:
        return
    settings.state_directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    settings.runtime_directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    for directory in (
        settings.state_directory / JOBS_DIRECTORY,
        settings.jobs.artifacts,
        settings.runtime_directory / JOBS_DIRECTORY,
    ):
        claim_directory(directory, account)
    give_up_root(account, groups=group_for_socket(engine_socket(settings), account))
