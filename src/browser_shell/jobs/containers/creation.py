"""The engine's "create" request for an order. Every restriction on a job's container is in this file."""

from __future__ import annotations

import re

from browser_shell.core.containers import MIB, ContainerLimits, ContainerOrder
from browser_shell.core.errors import SandboxViolation
from browser_shell.core.json_values import JsonObject, JsonValue

RUN_LABEL = "browser-shell.run"
SERVER_LABEL = "browser-shell.server"
LOCK_LABEL = "browser-shell.lock"
DEADLINE_LABEL = "browser-shell.deadline"

HANDOVER_SECONDS = 30
"""Time to hand over /output after the run's timeout. Then the container is killed."""
SPARE_SECONDS = 30
"""Margin after the hand-over. An older container has lost its server and may be swept."""

_INIT = ("/usr/bin/python3", "-I", "-S", "/usr/local/lib/browser-shell/job_init")
_ACCOUNT = "10001:10001"
_SHARED_MEMORY_BYTES = 64 * MIB
_MEMORY_FOR_PROGRAMS_BYTES = 128 * MIB
_OPEN_FILES = 4096
_PROCESSES_OF_ALL_RUNS = 4096
_SCRATCH_ENTRIES = 50_000
_MAX_TIMEOUT_SECONDS = 3600
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PINNED_IMAGE = re.compile(r"(?:[^\s@]+@)?sha256:[0-9a-f]{64}")
# LD_* variables of the dynamic loader would also affect the init process.
_VARIABLE = re.compile(r"(?!LD_)[A-Z_][A-Z0-9_]*")


def check_order(order: ContainerOrder) -> None:
    """Check every field of an order. Raises: SandboxViolation, which names the field and the rule."""
    _require(_RUN_ID.fullmatch(order.run_id), "run_id", "letters, digits and _.- only, at most 64")
    _require(_PINNED_IMAGE.fullmatch(order.image), "image", "a digest or a local id, never a tag")
    _require(order.argv and not any("\0" in word for word in order.argv), "argv", "at least one word, no NUL")
    for name, value in order.environment.items():
        _require(
            _VARIABLE.fullmatch(name) and "\0" not in value,
            "environment",
            "capitals, digits and _, no LD_ prefix, no NUL",
        )
    _require(order.workspace.is_absolute() and order.output.is_absolute(), "workspace and output", "absolute paths")
    _check_limits(order.limits)


def _check_limits(limits: ContainerLimits) -> None:
    _require(0 < limits.cpus <= 64, "limits.cpus", "more than 0, at most 64")
    _require(0 < limits.timeout_seconds <= _MAX_TIMEOUT_SECONDS, "limits.timeout_seconds", "1 to 3600")
    _require(2 <= limits.processes <= 4096, "limits.processes", "2 to 4096")
    _require(1 <= limits.output_entries <= 1_000_000, "limits.output_entries", "1 to 1000000")
    _require(limits.log_bytes >= 0, "limits.log_bytes", "not negative")
    for name, size in (("scratch_bytes", limits.scratch_bytes), ("output_bytes", limits.output_bytes)):
        _require(size >= MIB, f"limits.{name}", "at least 1 MiB")
    in_memory = limits.scratch_bytes + limits.output_bytes + _SHARED_MEMORY_BYTES
    _require(
        limits.memory_bytes >= in_memory + _MEMORY_FOR_PROGRAMS_BYTES,
        "limits.memory_bytes",
        "scratch_bytes and output_bytes are held in memory, and 192 MiB more are needed",
    )


def _require(holds: object, field: str, rule: str) -> None:
    if not holds:
        raise SandboxViolation(f"{field}: {rule}", rule_id=f"sandbox.{field}")


def lifetime_seconds(limits: ContainerLimits) -> int:
    """Seconds from creation until any server may remove the container."""
    return limits.timeout_seconds + HANDOVER_SECONDS + SPARE_SECONDS


def container_config(order: ContainerOrder, *, image_id: str, labels: dict[str, str], counts_files: bool) -> JsonObject:
    """Return the body of the "create" request. `counts_files`: the engine supports `nr_inodes` on tmpfs."""
    limits = order.limits
    # The init enforces a later timeout of its own, in case the server has died.
    init_seconds = limits.timeout_seconds + SPARE_SECONDS
    return {
        "Image": image_id,
        "Entrypoint": [*_INIT, str(init_seconds), str(limits.output_bytes), str(limits.output_entries)],
        "Cmd": list(order.argv),
        "Env": [f"{name}={value}" for name, value in order.environment.items()],
        "User": _ACCOUNT,
        "WorkingDir": "/work",
        "Hostname": "job",
        "Labels": dict(labels),
        "Tty": False,
        "OpenStdin": False,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": True,
        # `podman rm --force` sends this signal and waits before it kills.
        "StopSignal": "SIGKILL",
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": _host_config(order, counts_files=counts_files),
    }


def _host_config(order: ContainerOrder, *, counts_files: bool) -> JsonObject:
    limits = order.limits
    largest_file = max(limits.output_bytes, limits.scratch_bytes)
    return {
        "NetworkMode": "none",
        "Mounts": [
            {
                "Type": "bind",
                "Source": str(order.workspace),
                "Target": "/work",
                "ReadOnly": True,
                # ReadOnly does not apply to mounts inside the workspace, so they are left out.
                "BindOptions": {"Propagation": "rprivate", "NonRecursive": True},
            }
        ],
        "Tmpfs": {
            "/tmp": _tmpfs(limits.scratch_bytes, _SCRATCH_ENTRIES if counts_files else None),  # noqa: S108 - a path inside the container
            # Without these entries Podman mounts both itself: unlimited, and without noexec.
            "/run": "ro,noexec,nosuid,nodev,size=65536,mode=755",
            "/var/tmp": _tmpfs(MIB, None),  # noqa: S108 - a path inside the container
            "/output": _tmpfs(limits.output_bytes, limits.output_entries if counts_files else None),
        },
        "ShmSize": _SHARED_MEMORY_BYTES,
        "ReadonlyRootfs": True,
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(limits.cpus * 1_000_000_000),
        "PidsLimit": limits.processes,
        "Ulimits": [
            _ulimit("core", 0),
            _ulimit("fsize", largest_file),
            _ulimit("nofile", _OPEN_FILES),
            # Counts all processes of the uid on the machine; PidsLimit is per container. Podman's default is the
            # kernel's maximum, which setrlimit may refuse.
            _ulimit("nproc", _PROCESSES_OF_ALL_RUNS),
        ],
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "RestartPolicy": {"Name": "no"},
        # The server reads the attached stream. A log kept by the engine could fill its disk.
        "LogConfig": {"Type": "none", "Config": {}},
        "AutoRemove": False,
    }


def _tmpfs(size_bytes: int, entries: int | None) -> str:
    # Without nr_inodes the container's memory limit is the bound: empty files use memory too.
    count = "" if entries is None else f",nr_inodes={entries}"
    return f"rw,noexec,nosuid,nodev,size={size_bytes},mode=1777{count}"


def _ulimit(name: str, value: int) -> JsonValue:
    return {"Name": name, "Soft": value, "Hard": value}
