"""A container without one of its locks does not start, and says which flag was forgotten."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.boxes import LOCKS, SECCOMP, TMPFS, lock_flags
from support.engine import Engine
from support.time_limits import within

SAY_SECONDS = 5
BAD_SETTINGS = 2


def refused_start(engine: Engine, flags: Sequence[str]) -> str:
    """What a container says that will not start, within five seconds; the best of three on a machine that is busy."""
    for _ in range(3):
        began = time.monotonic()
        # Without a network: making one takes Podman a second or two that are not ours.
        name = f"bsb-refused-{os.getpid()}"
        words = ("run", "--rm", "--name", name, "--network", "none", *flags, *engine.run_flags)
        try:
            ended = engine.finish(*words, engine.image, seconds=30)
        except subprocess.TimeoutExpired:
            # It did start. Left running, it would hold the name against the next test.
            engine.finish("rm", "--force", "--volumes", name)
            raise
        seconds = time.monotonic() - began
        assert ended.returncode == BAD_SETTINGS, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        if within(seconds, SAY_SECONDS):
            return ended.stderr
    raise AssertionError(f"it took longer than {SAY_SECONDS} s to say so, three times")


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
    """Docker's own profile forbids namespaces; Podman's allows them, but not what Chromium's sandbox does next."""
    assert "add: --security-opt seccomp=" in refused_start(engine, lock_flags(without=["seccomp"]))


@pytest.mark.promise("container:all-locks-or-no-start")
def test_without_any_filter_the_flag_is_named(engine: Engine) -> None:
    flags = [*lock_flags(without=["seccomp"]), "--security-opt", "seccomp=unconfined"]
    assert "add: --security-opt seccomp=" in refused_start(engine, flags)


def test_a_machine_without_user_namespaces_is_told_what_to_set(engine: Engine, tmp_path: Path) -> None:
    """The kernel then answers ENOSPC; here the filter does, because the machine is not ours to change."""
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    for rule in [rule for rule in profile["syscalls"] if rule["names"] == ["unshare"]]:
        profile["syscalls"].remove(rule)
    profile["syscalls"].append({"names": ["unshare"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28})
    said = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "sysctl user.max_user_namespaces" in said


@pytest.mark.parametrize("name", ["unshare", "chroot"])
def test_a_profile_that_lacks_what_the_sandbox_needs_is_named(engine: Engine, tmp_path: Path, name: str) -> None:
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"] != [name]]
    said = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "--security-opt seccomp=" in said


def test_root_is_refused(engine: Engine) -> None:
    assert "add: --user 1000:1000" in refused_start(engine, [*lock_flags(), "--user", "0:0"])


def test_a_read_only_container_without_a_place_for_temporary_files_is_told_so(engine: Engine) -> None:
    # Podman puts temporary file systems into read-only containers by itself, Docker does not.
    alone = ["--read-only"] if engine.name == "docker" else ["--read-only", "--read-only-tmpfs=false"]
    said = refused_start(engine, [*lock_flags(without=["root", "tmp"]), *alone])
    assert f"it cannot write to /tmp; add: --tmpfs {TMPFS}" in said


def test_a_place_for_temporary_files_from_which_programs_run_is_refused(engine: Engine) -> None:
    flags = [*lock_flags(without=["tmp"]), "--tmpfs", TMPFS.replace("noexec", "exec")]
    assert f"programs can be run from /tmp; add: --tmpfs {TMPFS}" in refused_start(engine, flags)


@pytest.mark.promise("container:all-locks-or-no-start")
def test_a_filter_that_lets_more_through_than_ours_is_refused(engine: Engine, tmp_path: Path) -> None:
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    profile["syscalls"].append({"names": ["socket", "keyctl"], "action": "SCMP_ACT_ALLOW"})
    said = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "lets through keyctl, socket(AF_VSOCK), socket(NETLINK_NETFILTER), socket(IPPROTO_MPTCP); add:" in said


@pytest.mark.promise("container:all-locks-or-no-start")
def test_where_mounting_is_forbidden_the_lock_is_named(engine: Engine, tmp_path: Path) -> None:
    """As AppArmor would; here the filter does."""
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"] != ["mount"]]
    said = refused_start(engine, [*lock_flags(without=["seccomp"]), *_profile(tmp_path, profile)])
    assert "BROWSER_SHELL_UNSAFE_MISSING_LOCKS=mounts" in said
    assert "--security-opt apparmor=unconfined" in said


@pytest.mark.promise("container:all-locks-or-no-start")
def test_no_variable_switches_the_locks_off(engine: Engine) -> None:
    flags = [*lock_flags(without=["capabilities"]), "--env", "BROWSER_SHELL_CONTAINER="]
    assert "add: --cap-drop ALL" in refused_start(engine, flags)


def test_a_state_that_cannot_be_written_is_named(engine: Engine, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    flags = [*lock_flags(), "--volume", f"{tmp_path}:/var/lib/browser-shell"]
    assert "uid 1000 cannot write to /var/lib/browser-shell" in refused_start(engine, flags)


def test_a_wrong_key_stops_the_start(engine: Engine) -> None:
    assert "JWT_PUBLIC_KEY" in refused_start(engine, [*lock_flags(), "--env", "JWT_PUBLIC_KEY=bm90IGEga2V5"])


def test_every_lock_of_the_tests_is_one_that_the_server_knows() -> None:
    from browser_shell.settings import CONTAINER_LOCKS

    # The user is the image's own; mounting is allowed unless a host forbids it.
    assert copy.copy(set(LOCKS)) | {"user", "mounts"} == set(CONTAINER_LOCKS)


def _profile(directory: Path, profile: object) -> list[str]:
    path = directory / "seccomp.json"
    path.write_text(json.dumps(profile), encoding="utf-8")
    return ["--security-opt", f"seccomp={path}"]
