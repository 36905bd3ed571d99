"""Builds and runs the write profile: test jobs in containers, without browser, display and jail."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio
import structlog

from browser_shell.core.calls import ContainerJob
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.egress.dialer import SystemResolver
from browser_shell.hooks.chain import JOB_GROUP, installed_hooks, job_chain
from browser_shell.jobs.containers.engine import DisposableContainers, ServerLock
from browser_shell.jobs.evidence import RunCloser
from browser_shell.jobs.run_store import RunStore
from browser_shell.jobs.sandbox import ContainerSandbox
from browser_shell.jobs.upkeep import JobUpkeep
from browser_shell.pipeline import Pipeline
from browser_shell.policy.jobs import JobPolicy
from browser_shell.process.accounts import (
    account_to_drop_to,
    claim_directory,
    give_up_root,
    group_for_socket,
    make_private_directory,
)
from browser_shell.runner import ExecutionRunner
from browser_shell.server.common import AssembledServer, SystemClock, open_audit, open_limits
from browser_shell.settings import JOBS_DIRECTORY, Settings
from browser_shell.tools.job_tools import job_tools
from browser_shell.tools.registry import ToolRegistry
from browser_shell.viewer.messages import RecentActivity

INSTRUCTIONS = (
    "Two tools run tests of one workspace, each call in a fresh container without network: run_pytest and "
    "run_playwright. passed and exit_code give the result, failures the reasons; output and files are kept under "
    "run_id. Tests that fail are a result; a timeout or a broken limit is an error that names the run."
)
_SOCKETS = {"docker": Path("/var/run/docker.sock"), "podman": Path("/run/podman/podman.sock")}
_SCHEME = "unix://"

log = structlog.get_logger()


class NoHumanControl:
    """A HumanControl for a server without a display."""

    def seconds_left(self) -> float:
        return 0.0


@asynccontextmanager
async def assemble_jobs(settings: Settings) -> AsyncIterator[AssembledServer]:
    """Build and run all parts of the write profile. Raises: ConfigurationInvalid, SandboxUnavailable."""
    open_workspace(settings)  # Again below: it must also be accessible without root.
    _drop_root(settings)
    settings.runtime_directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    workspace = open_workspace(settings)
    clock, document, rules = SystemClock(), settings.policy, settings.policy.sandbox
    with ExitStack() as resources:
        audit = resources.enter_context(open_audit(settings, JOBS_DIRECTORY))
        lock = ServerLock(settings.state_directory / JOBS_DIRECTORY / "locks", secrets.token_hex(8))
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
            append_record=audit.append,
            clock=clock,
        )
        upkeep = JobUpkeep(
            engine=engine, store=store, closer=closer, retention=rules.retention, audit=audit, clock=clock
        )
        policy = JobPolicy(document)

        async def probe_engine() -> None:
            await engine.image_id(image)

        await upkeep.begin()
        async with open_limits(settings) as limits, anyio.create_task_group() as background:
            background.start_soon(audit.run_checkpoints)
            background.start_soon(upkeep.keep_up)
            pipeline: Pipeline[ContainerJob] = Pipeline(
                registry=ToolRegistry(job_tools(document, policy.tools)),
                limits=limits,
                hooks=job_chain(
                    max_output_characters=document.output.max_characters,
                    redact=document.output.redact,
                    plugins=installed_hooks(JOB_GROUP),
                ),
                policy=policy,
                resolver=SystemResolver(),
                audit=audit,
                runner=ExecutionRunner(containers=sandbox),
                human=NoHumanControl(),
                show_activity=RecentActivity().add,
                clock=clock,
            )
            yield AssembledServer(
                pipeline=pipeline,
                audit=audit,
                runtime_directory=make_private_directory(settings.runtime_directory / JOBS_DIRECTORY, owner=None),
                probes={"engine": probe_engine},
                sessions_open=lambda: len(store.active),
                instructions=INSTRUCTIONS,
                job_image=image,
            )
            background.cancel_scope.cancel()


def open_workspace(settings: Settings) -> Path:
    """Return the resolved workspace. Raises: ConfigurationInvalid for a directory that jobs must not see."""
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
    return root


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
