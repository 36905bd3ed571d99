"""A container without one of its locks does not start, and names the missing flag."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from browser_shell.settings import CONTAINER_LOCKS
from support.boxes import LOCKS, SECCOMP, TMPFS, lock_flags
from support.engine import Engine
from support.time_limits import within

REFUSAL_SECONDS = 5
BAD_SETTINGS = 2


def refused_start(engine: Engine, flags: Sequence[str]) -> str:
    """Return standard error of a container that must refuse to start within five seconds, in one of three attempts."""
    for _ in range(3):
        started_at = time.monotonic()
        # Without a network, because Podman needs up to two seconds to set one up.
        name = f"bsb-refused-{os.getpid()}"
        arguments = ("run", "--rm", "--name", name, "--network", "none", *flags, *engine.run_flags)
        try:
            ended = engine.finish(*arguments, engine.image, seconds=30)
        except subprocess.TimeoutExpired:
            # The container did start. Remove it, because the next test uses the same name.
            engine.finish("rm", "--force", "--volumes", name)
            raise
        seconds = time.monotonic() - started_at
        assert ended.returncode == BAD_SETTINGS, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        if within(seconds, REFUSAL_SECONDS):
            return ended.stderr
    raise AssertionError(f"the refusal took longer than {REFUSAL_SECONDS} s in three attempts")


@pytest.mark.promise("container:all-locks-or-no-start")
@pytest.mark.parametrize(
    ("lock", "flag"),
    [
        ("capabilities", "add: --cap-drop ALL"),
        ("privileges", "add: --security-opt no-new-privileges"),
        ("root", "add: --read-only\n"),
        ("tmp", f"add: --tmpfs {TMPFS}"),
    ],
)
def test_a_missing_lock_is_named(engine: Engine, lock: str, flag: str) -> None:
    assert flag in refused_start(engine, lock_flags(without=[lock]))


@pytest.mark.promise("container:all-locks-or-no-start")
@pytest.mark.parametrize(
    ("flags", "flag"), [(("--memory", "0"), "--memory 2g"), (("--pids-limit", "-1"), "--pids-limit")]
)
def test_a_missing_limit_is_named(engine: Engine, flags: tuple[str, str], flag: str) -> None:
    without = ["memory"] if "--memory" in flags else ["pids"]
    assert f"add: {flag}" in refused_start(engine, [*lock_flags(without=without), *flags])


@pytest.mark.promise("container:all-locks-or-no-start")
def test_without_the_seccomp_profile_the_flag_is_named(engine: Engine) -> None:
    """Docker's default profile forbids namespaces. Podman's permits them, but not chroot, which the sandbox needs."""
    assert "add: --security-opt seccomp=" in refused_start(engine, lock_flags(without=["seccomp"]))


@pytest.mark.promise("container:all-locks-or-no-start")
def test_without_any_filter_the_flag_is_named(engine: Engine) -> None:
    flags = [*lock_flags(without=["seccomp"]), "--security-opt", "seccomp=unconfined"]
    assert "add: --security-opt seccomp=" in refused_start(engine, flags)


def test_without_user_namespaces_the_sysctl_is_named(engine: Engine, tmp_path: Path) -> None:
    """The kernel then answers ENOSPC. Here a filter does, to leave the host unchanged."""
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    for rule in [rule for rule in profile["syscalls"] if rule["names"] == ["unshare"]]:
        profile["syscalls"].remove(rule)
    profile["syscalls"].append({"names": ["unshare"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28})
    errors = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "sysctl user.max_user_namespaces" in errors


@pytest.mark.parametrize("name", ["unshare", "chroot"])
def test_a_profile_without_a_call_of_the_sandbox_is_named(engine: Engine, tmp_path: Path, name: str) -> None:
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"] != [name]]
    errors = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "--security-opt seccomp=" in errors


def test_root_is_refused(engine: Engine) -> None:
    assert "add: --user 1000:1000" in refused_start(engine, [*lock_flags(), "--user", "0:0"])


def test_a_read_only_container_without_a_writable_tmp_is_refused(engine: Engine) -> None:
    # Podman adds temporary file systems to read-only containers, Docker does not.
    alone = ["--read-only"] if engine.name == "docker" else ["--read-only", "--read-only-tmpfs=false"]
    errors = refused_start(engine, [*lock_flags(without=["root", "tmp"]), *alone])
    assert f"it cannot write to /tmp; add: --tmpfs {TMPFS}" in errors


def test_an_executable_tmp_is_refused(engine: Engine) -> None:
    flags = [*lock_flags(without=["tmp"]), "--tmpfs", TMPFS.replace("noexec", "exec")]
    assert f"programs can be run from /tmp; add: --tmpfs {TMPFS}" in refused_start(engine, flags)


@pytest.mark.promise("container:all-locks-or-no-start")
def test_a_filter_that_permits_more_than_the_shipped_one_is_refused(engine: Engine, tmp_path: Path) -> None:
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    profile["syscalls"].append({"names": ["socket", "keyctl"], "action": "SCMP_ACT_ALLOW"})
    errors = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "lets through keyctl, socket(AF_VSOCK), socket(NETLINK_NETFILTER), socket(IPPROTO_MPTCP); add:" in errors


@pytest.mark.promise("container:all-locks-or-no-start")
def test_a_host_that_forbids_mounting_is_refused(engine: Engine, tmp_path: Path) -> None:
    """AppArmor may forbid mounting. Here a filter does."""
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"] != ["mount"]]
    errors = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "BROWSER_SHELL_UNSAFE_MISSING_LOCKS=mounts" in errors
    assert "--security-opt apparmor=unconfined" in errors


@pytest.mark.promise("container:all-locks-or-no-start")
def test_no_variable_switches_the_locks_off(engine: Engine) -> None:
    flags = [*lock_flags(without=["capabilities"]), "--env", "BROWSER_SHELL_CONTAINER="]
    assert "add: --cap-drop ALL" in refused_start(engine, flags)


def test_a_state_directory_that_is_not_writable_is_refused(engine: Engine, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    flags = [*lock_flags(), "--volume", f"{tmp_path}:/var/lib/browser-shell"]
    assert "uid 1000 cannot write to /var/lib/browser-shell" in refused_start(engine, flags)


def test_an_invalid_key_is_refused(engine: Engine) -> None:
    assert "JWT_PUBLIC_KEY" in refused_start(engine, [*lock_flags(), "--env", "JWT_PUBLIC_KEY=bm90IGEga2V5"])


def test_the_tests_cover_every_lock() -> None:
    # The image sets the user. Mounting is permitted unless the host forbids it.
    assert set(LOCKS) | {"user", "mounts"} == set(CONTAINER_LOCKS)


def _profile(directory: Path, profile: object) -> list[str]:
    path = directory / "seccomp.json"
    path.write_text(json.dumps(profile), encoding="utf-8")
    return ["--security-opt", f"seccomp={path}"]
