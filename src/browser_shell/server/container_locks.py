"""The container options that the shipped image requires, and the flag that sets each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.seccomp_probe import calls_let_through
from browser_shell.settings import Settings

TMPFS_FLAG = "--tmpfs /tmp:noexec,nosuid,nodev,size=512m,mode=1777"
SECCOMP_FLAG = "--security-opt seccomp=seccomp.json"
ALL_FLAGS = (
    f"--cap-drop ALL --security-opt no-new-privileges {SECCOMP_FLAG} --read-only {TMPFS_FLAG} "
    "--memory 2g --pids-limit 512"
)
_SECCOMP_FILTER = "2"
_UNLIMITED_BYTES = 1 << 60
"""Bytes. cgroup v1 shows an absent memory limit as the largest number of whole pages."""
_MEMORY_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
_PIDS_LIMITS = ("sys/fs/cgroup/pids.max", "sys/fs/cgroup/pids/pids.max")


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLock:
    name: str
    problem: str
    flag: str


def require_locks(settings: Settings) -> None:
    """Refuse to start the shipped image without one of its locks. Other installations need none.

    Namespaces and mounts are not checked here: the jail reports them when it starts.

    Raises: ConfigurationInvalid with every flag to add.
    """
    if not settings.in_container:
        return
    missing = [lock for lock in missing_locks() if settings.needs_lock(lock.name)]
    missing += _unwritable(settings)
    if missing:
        lines = [f"  {lock.problem}; add: {lock.flag}" for lock in missing]
        raise ConfigurationInvalid(
            "this container lacks locks that its protection depends on:\n"
            + "\n".join(lines)
            + f"\nAll flags together: {ALL_FLAGS}"
            + "\nBROWSER_SHELL_UNSAFE_MISSING_LOCKS names locks to do without; see docs/reference/image.md"
        )


def missing_locks(
    root: Path = Path("/"), let_through: Callable[[], Sequence[str]] = calls_let_through
) -> Iterator[MissingLock]:
    """Yield every lock that the kernel does not confirm. `root` holds proc and sys, for tests."""
    status = _status(root)
    if "0" in status.get("Uid", "0").split():
        yield MissingLock(name="user", problem="it runs as root", flag="--user 1000:1000")
    if {int(status.get(name, "f"), 16) for name in ("CapBnd", "CapEff", "CapPrm")} != {0}:
        yield MissingLock(name="capabilities", problem="it may get capabilities", flag="--cap-drop ALL")
    if status.get("NoNewPrivs") != "1":
        yield MissingLock(
            name="privileges", problem="its programs may gain privileges", flag="--security-opt no-new-privileges"
        )
    if status.get("Seccomp") != _SECCOMP_FILTER:
        yield MissingLock(name="seccomp", problem="no filter restricts its system calls", flag=SECCOMP_FLAG)
    elif calls := let_through():
        problem = f"its filter is not the shipped one and lets through {', '.join(calls)}"
        yield MissingLock(name="seccomp", problem=problem, flag=SECCOMP_FLAG)
    if not _is_mounted_with(root, "/", "ro"):
        yield MissingLock(name="root", problem="its own files can be changed", flag="--read-only")
    if not _is_mounted_with(root, "/tmp", "noexec"):  # noqa: S108  X and Chromium need this directory
        yield MissingLock(name="tmp", problem="programs can be run from /tmp", flag=TMPFS_FLAG)
    if not _is_limited(root, _MEMORY_LIMITS):
        yield MissingLock(name="memory", problem="it may use all memory of the machine", flag="--memory 2g")
    if not _is_limited(root, _PIDS_LIMITS):
        yield MissingLock(name="pids", problem="it may start any number of processes", flag="--pids-limit 512")


def _unwritable(settings: Settings) -> Iterator[MissingLock]:
    """Yield the directories that a read-only container must be able to write to but cannot."""
    if not os.access("/tmp", os.W_OK):  # noqa: S108  X and Chromium need this directory
        yield MissingLock(name="writable-tmp", problem="it cannot write to /tmp", flag=TMPFS_FLAG)
    if not os.access(settings.state_directory, os.W_OK):
        yield MissingLock(
            name="state",
            problem=f"uid {os.geteuid()} cannot write to {settings.state_directory}",
            flag=f"--volume browser-shell-state:{settings.state_directory}",
        )


def _status(root: Path) -> dict[str, str]:
    try:
        text = (root / "proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def _is_mounted_with(root: Path, mount_point: str, option: str) -> bool:
    try:
        lines = (root / "proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    # Fields: id, parent, device, root, mount point, options. The last mount at a mount point hides earlier ones.
    options = [fields[5].split(",") for fields in map(str.split, lines) if fields[4] == mount_point]
    return bool(options) and option in options[-1]


def _is_limited(root: Path, files: tuple[str, ...]) -> bool:
    for file in files:
        try:
            text = (root / file).read_text(encoding="ascii").strip()
        except OSError:
            continue
        return text.isdigit() and int(text) < _UNLIMITED_BYTES
    return False
