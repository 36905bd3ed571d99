"""The locks of the container image, checked against simulated files of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser_shell import settings as settings_module
from browser_shell.commands.cli import run
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.server.container_locks import missing_locks, require_locks
from browser_shell.settings import CONTAINER_LOCKS, read_settings

STATUS = {
    "Uid": "1000\t1000\t1000\t1000",
    "CapPrm": "0000000000000000",
    "CapEff": "0000000000000000",
    "CapBnd": "0000000000000000",
    "NoNewPrivs": "1",
    "Seccomp": "2",
}
MOUNTS = "100 90 0:50 / / ro,relatime - overlay overlay rw\n101 100 0:51 / /tmp rw,nosuid,noexec - tmpfs tmpfs rw\n"


def fake_machine(
    root: Path,
    *,
    status: dict[str, str] | None = None,
    mounts: str = MOUNTS,
    memory: str = "2147483648",
    pids: str = "512",
    cgroup_v1: bool = False,
) -> Path:
    (root / "proc/self").mkdir(parents=True)
    lines = [f"{name}:\t{value}\n" for name, value in {**STATUS, **(status or {})}.items()]
    (root / "proc/self/status").write_text("".join(lines))
    (root / "proc/self/mountinfo").write_text(mounts)
    files = {"memory.max": memory, "pids.max": pids}
    if cgroup_v1:
        files = {"memory/memory.limit_in_bytes": memory, "pids/pids.max": pids}
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def names(root: Path, *, let_through: tuple[str, ...] = ()) -> list[str]:
    return [lock.name for lock in missing_locks(root, lambda: let_through)]


@pytest.mark.parametrize("cgroup_v1", [False, True])
def test_a_container_with_every_lock_is_complete(tmp_path: Path, cgroup_v1: bool) -> None:
    assert names(fake_machine(tmp_path, cgroup_v1=cgroup_v1)) == []


@pytest.mark.parametrize(
    ("field", "value", "lock"),
    [
        ("Uid", "0\t0\t0\t0", "user"),
        ("Uid", "1000\t0\t1000\t1000", "user"),
        ("CapBnd", "00000000a80425fb", "capabilities"),
        ("CapEff", "0000000000000004", "capabilities"),
        ("CapPrm", "0000000000000001", "capabilities"),
        ("NoNewPrivs", "0", "privileges"),
        ("Seccomp", "0", "seccomp"),
    ],
)
def test_each_line_of_proc_status_is_checked(tmp_path: Path, field: str, value: str, lock: str) -> None:
    assert names(fake_machine(tmp_path, status={field: value})) == [lock]


def test_a_writable_root_is_reported(tmp_path: Path) -> None:
    assert names(fake_machine(tmp_path, mounts=MOUNTS.replace(" / ro", " / rw"))) == ["root"]


@pytest.mark.parametrize("mounts", [MOUNTS.replace(",noexec", ""), MOUNTS.splitlines()[0]])
def test_an_executable_tmp_is_reported(tmp_path: Path, mounts: str) -> None:
    assert names(fake_machine(tmp_path, mounts=mounts)) == ["tmp"]


def test_only_the_last_mount_at_a_mount_point_counts(tmp_path: Path) -> None:
    over = "102 101 0:52 / /tmp rw,nosuid - tmpfs tmpfs rw\n"
    assert names(fake_machine(tmp_path, mounts=MOUNTS + over)) == ["tmp"]


def test_the_system_calls_that_another_filter_permits_are_named(tmp_path: Path) -> None:
    (lock,) = missing_locks(fake_machine(tmp_path), lambda: ("keyctl", "socket(AF_VSOCK)"))
    assert lock.name == "seccomp"
    assert "keyctl, socket(AF_VSOCK)" in lock.problem


@pytest.mark.parametrize(("limit", "lock"), [({"memory": "max"}, "memory"), ({"pids": "max"}, "pids")])
def test_a_missing_limit_is_reported(tmp_path: Path, limit: dict[str, str], lock: str) -> None:
    assert names(fake_machine(tmp_path, **limit)) == [lock]  # type: ignore[arg-type]  # only these two keys


def test_an_unlimited_value_of_cgroup_v1_is_a_missing_limit(tmp_path: Path) -> None:
    assert names(fake_machine(tmp_path, memory="9223372036854771712", cgroup_v1=True)) == ["memory"]


def test_locks_whose_files_cannot_be_read_are_missing(tmp_path: Path) -> None:
    # The jail checks mounting.
    assert names(tmp_path) == [name for name in CONTAINER_LOCKS if name != "mounts"]


def test_an_unknown_lock_cannot_be_waived() -> None:
    with pytest.raises(ConfigurationInvalid, match="BROWSER_SHELL_UNSAFE_MISSING_LOCKS"):
        read_settings({"BROWSER_SHELL_UNSAFE_MISSING_LOCKS": "memory,everything"})


@pytest.mark.promise("container:all-locks-or-no-start")
@pytest.mark.parametrize("env", [{}, {"BROWSER_SHELL_CONTAINER": ""}, {"BROWSER_SHELL_CONTAINER": "0"}])
def test_no_variable_switches_off_the_locks_of_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str]
) -> None:
    marker = tmp_path / "shipped-image"
    marker.touch()
    monkeypatch.setattr(settings_module, "IMAGE_MARKER", marker)
    settings = read_settings({**env, "BROWSER_SHELL_UNSAFE_MISSING_LOCKS": "memory"})
    assert settings.in_container
    assert settings.needs_lock("mounts")
    assert not settings.needs_lock("memory")
    with pytest.raises(ConfigurationInvalid, match="add: --read-only"):
        require_locks(settings)


def test_other_installations_need_locks_only_with_the_variable() -> None:
    assert not read_settings({}).in_container
    assert not read_settings({}).needs_lock("mounts")
    assert read_settings({"BROWSER_SHELL_CONTAINER": "1"}).needs_lock("mounts")


@pytest.mark.promise("container:all-locks-or-no-start")
@pytest.mark.parametrize("option", [("--unsafe-no-jail",), ("--unsafe-attach", "9222")])
def test_the_image_refuses_to_run_without_its_jail(
    option: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Every lock is waived, so that only the option is refused.
    monkeypatch.setenv("BROWSER_SHELL_CONTAINER", "1")
    monkeypatch.setenv("BROWSER_SHELL_UNSAFE_MISSING_LOCKS", ",".join(CONTAINER_LOCKS))
    monkeypatch.setattr("browser_shell.commands.serve._log_to_stderr", lambda: None)
    assert run(["stdio", *option]) != 0
    assert "the image runs its own browser in its jail" in capsys.readouterr().err
