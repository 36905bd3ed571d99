"""The create request holds every restriction, and orders beyond the rules are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browser_shell.core.containers import ContainerLimits, ContainerOrder
from browser_shell.core.errors import SandboxViolation
from browser_shell.jobs.containers.creation import check_order, container_config

MIB = 1024 * 1024
ORDER = ContainerOrder(
    run_id="run-1",
    image="sha256:" + "a" * 64,
    argv=("python", "-m", "pytest"),
    environment={"CI": "1"},
    workspace=Path("/srv/workspace"),
    output=Path("/srv/artifacts/run-1/output"),
    log_path=Path("/srv/artifacts/run-1/log"),
    limits=ContainerLimits(),
)


def config(**changes: Any) -> dict[str, Any]:
    return container_config(replace(ORDER, **changes), image_id=ORDER.image, labels={}, counts_files=True)


@pytest.mark.promise("jobs:walls")
def test_every_restriction_is_requested() -> None:
    host = config()["HostConfig"]
    expected = {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "Memory": 1024 * MIB,
        "MemorySwap": 1024 * MIB,
        "NanoCpus": 1_000_000_000,
        "PidsLimit": 256,
        "IpcMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no"},
    }
    assert {name: host[name] for name in expected} == expected
    assert config()["User"] == "10001:10001"
    for absent in ("Binds", "Devices", "CapAdd", "PortBindings", "VolumesFrom", "PidMode", "UTSMode", "Sysctls"):
        assert absent not in host


@pytest.mark.promise("jobs:walls")
def test_the_workspace_is_the_only_mount_and_read_only() -> None:
    (mount,) = config()["HostConfig"]["Mounts"]
    assert (mount["Source"], mount["Target"], mount["ReadOnly"]) == ("/srv/workspace", "/work", True)
    assert "/srv/artifacts" not in str(config())


def test_the_environment_holds_only_the_variables_of_the_order() -> None:
    assert config()["Env"] == ["CI=1"]


def test_tmpfs_mounts_are_bounded_and_not_executable() -> None:
    for options in config()["HostConfig"]["Tmpfs"].values():
        assert {"noexec", "nosuid", "nodev"} <= set(options.split(","))
        assert "size=" in options


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("run_id", {"run_id": ""}),
        ("run_id", {"run_id": "../x"}),
        ("run_id", {"run_id": "x" * 65}),
        ("image", {"image": "browser-shell/jobs:latest"}),
        ("image", {"image": "sha256:abc"}),
        ("image", {"image": "sha256:" + "A" * 64}),
        ("argv", {"argv": ()}),
        ("argv", {"argv": ("a\0b",)}),
        ("environment", {"environment": {"a b": "1"}}),
        ("environment", {"environment": {"A=B": "1"}}),
        ("environment", {"environment": {"LD_PRELOAD": "/work/x.so"}}),
        ("environment", {"environment": {"A": "\0"}}),
        ("workspace", {"workspace": Path("relative")}),
        ("limits.cpus", {"limits": ContainerLimits(cpus=0)}),
        ("limits.timeout_seconds", {"limits": ContainerLimits(timeout_seconds=0)}),
        ("limits.timeout_seconds", {"limits": ContainerLimits(timeout_seconds=3601)}),
        ("limits.processes", {"limits": ContainerLimits(processes=0)}),
        ("limits.processes", {"limits": ContainerLimits(processes=-1)}),
        ("limits.output_entries", {"limits": ContainerLimits(output_entries=0)}),
        ("limits.output_bytes", {"limits": ContainerLimits(output_bytes=0)}),
        ("limits.scratch_bytes", {"limits": ContainerLimits(scratch_bytes=-1)}),
        ("limits.log_bytes", {"limits": ContainerLimits(log_bytes=-1)}),
        ("limits.memory_bytes", {"limits": ContainerLimits(memory_bytes=0)}),
        ("limits.memory_bytes", {"limits": ContainerLimits(output_bytes=577 * MIB)}),
    ],
)
def test_an_invalid_order_is_refused_with_the_name_of_its_field(field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(SandboxViolation, match=field):
        check_order(replace(ORDER, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"image": "registry.example/jobs@sha256:" + "0" * 64},
        {"limits": ContainerLimits(output_bytes=576 * MIB)},
        {"limits": ContainerLimits(timeout_seconds=3600, processes=4096)},
    ],
)
def test_an_order_at_the_limits_is_accepted(changes: dict[str, Any]) -> None:
    check_order(replace(ORDER, **changes))
