"""Builds the job side once: engine, workspace, runs and evidence, and the sandbox over them."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import Clock, ReceiptLog
from browser_shell.jobs.containers.engine import DisposableContainers
from browser_shell.jobs.containers.server_lock import ServerLock
from browser_shell.jobs.run_closing import RunCloser
from browser_shell.jobs.run_store import RunStore
from browser_shell.jobs.sandbox import ContainerSandbox
from browser_shell.jobs.upkeep import JobUpkeep
from browser_shell.jobs.workspace import Workspace, holds_any
from browser_shell.process.accounts import account_to_drop_to
from browser_shell.process.privileges import claim_directory, give_up_root, group_for_socket
from browser_shell.settings import JOBS_DIRECTORY, Settings

LOCKS_NAME = "locks"
_SOCKET = {"docker": Path("/var/run/docker.sock"), "podman": Path("/run/podman/podman.sock")}
_SCHEME = "unix://"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobParts:
    """What the rest of the server uses of the job side."""

    engine: DisposableContainers
    image: str
    sandbox: ContainerSandbox
    upkeep: JobUpkeep


def stop_being_root(settings: Settings) -> None:
    """Everything that root is needed for happens here. What stays is the one group that may use the engine's socket.

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


def engine_address(settings: Settings) -> str:
    return settings.jobs.engine_address or f"{_SCHEME}{_usual_socket(settings.policy.sandbox.engine)}"


def engine_socket(settings: Settings) -> Path:
    return Path(engine_address(settings).removeprefix(_SCHEME))


def open_workspace(settings: Settings) -> Workspace:
    """Raises: ConfigurationInvalid for a directory that jobs must not see."""
    wanted = settings.jobs.workspace
    if wanted is None:
        raise ConfigurationInvalid("BROWSER_SHELL_WORKSPACE: must name the directory whose tests are run (--workspace)")
    root = wanted.resolve()
    if not root.is_dir() or root == Path("/"):
        raise ConfigurationInvalid(f"BROWSER_SHELL_WORKSPACE: {wanted} must be a directory, and not /")
    roots = settings.policy.sandbox.workspace_roots
    if roots is not None and not any(holds_any(Path(allowed), [root]) for allowed in roots):
        raise ConfigurationInvalid(
            f"BROWSER_SHELL_WORKSPACE: {root} is in none of the policy's sandbox.workspace_roots"
        )
    private = (settings.state_directory, settings.jobs.artifacts, settings.runtime_directory, engine_socket(settings))
    inside = holds_any(root, private)
    if inside is not None:
        raise ConfigurationInvalid(f"BROWSER_SHELL_WORKSPACE: {root} holds {inside}, which jobs must not see")
    return Workspace(root=root)


async def build_jobs(settings: Settings, *, clock: Clock, audit: ReceiptLog, held: ExitStack) -> JobParts:
    """Asks the engine for the image, and runs nothing. The lock that it takes ends with `held`.

    Raises: ConfigurationInvalid, SandboxUnavailable.
    """
    workspace = open_workspace(settings)
    rules = settings.policy.sandbox
    lock = ServerLock(settings.state_directory / JOBS_DIRECTORY / LOCKS_NAME, secrets.token_hex(8))
    lock.acquire()
    held.callback(lock.release)
    engine = DisposableContainers(address=engine_address(settings), lock=lock, clock=clock)
    image = await engine.image_id(rules.image)
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
        policy_digest=settings.policy.digest(),
        audit=audit,
        clock=clock,
    )
    upkeep = JobUpkeep(engine=engine, store=store, closer=closer, retention=rules.retention, audit=audit, clock=clock)
    return JobParts(engine=engine, image=image, sandbox=sandbox, upkeep=upkeep)


def _usual_socket(engine: str) -> Path:
    if engine == "podman" and os.geteuid() != 0:
        return Path(f"/run/user/{os.geteuid()}/podman/podman.sock")
    return _SOCKET[engine]
