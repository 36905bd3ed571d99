"""What the server of the image asks of its container, by what the kernel would say."""

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


def a_machine(
    root: Path,
    *,
    status: dict[str, str] | None = None,
    mounts: str = MOUNTS,
    memory: str = "2147483648",
    pids: str = "512",
    first_version: bool = False,
) -> Path:
    (root / "proc/self").mkdir(parents=True)
    lines = [f"{name}:\t{value}\n" for name, value in {**STATUS, **(status or {})}.items()]
    (root / "proc/self/status").write_text("".join(lines))
    (root / "proc/self/mountinfo").write_text(mounts)
    files = {"memory.max": memory, "pids.max": pids}
    if first_version:
        files = {"memory/memory.limit_in_bytes": memory, "pids/pids.max": pids}
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def names(root: Path, *, let_through: tuple[str, ...] = ()) -> list[str]:
    return [lock.name for lock in missing_locks(root, lambda: let_through)]


@pytest.mark.parametrize("first_version", [False, True])
def test_a_container_with_every_lock_lacks_none(tmp_path: Path, first_version: bool) -> None:
    assert names(a_machine(tmp_path, first_version=first_version)) == []


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
def test_each_line_of_the_kernel_is_believed(tmp_path: Path, field: str, value: str, lock: str) -> None:
    assert names(a_machine(tmp_path, status={field: value})) == [lock]


def test_a_writable_root_is_seen(tmp_path: Path) -> None:
    assert names(a_machine(tmp_path, mounts=MOUNTS.replace(" / ro", " / rw"))) == ["root"]


@pytest.mark.parametrize("mounts", [MOUNTS.replace(",noexec", ""), MOUNTS.splitlines()[0]])
def test_a_place_from_which_programs_can_be_run_is_seen(tmp_path: Path, mounts: str) -> None:
    assert names(a_machine(tmp_path, mounts=mounts)) == ["tmp"]


def test_the_last_mount_at_a_place_is_the_one_that_counts(tmp_path: Path) -> None:
    over = "102 101 0:52 / /tmp rw,nosuid - tmpfs tmpfs rw\n"
    assert names(a_machine(tmp_path, mounts=MOUNTS + over)) == ["tmp"]


def test_a_filter_that_is_not_ours_is_seen_and_what_it_lets_through_is_named(tmp_path: Path) -> None:
    (lock,) = missing_locks(a_machine(tmp_path), lambda: ("keyctl", "socket(AF_VSOCK)"))
    assert lock.name == "seccomp"
    assert "keyctl, socket(AF_VSOCK)" in lock.what


@pytest.mark.parametrize(("limit", "lock"), [({"memory": "max"}, "memory"), ({"pids": "max"}, "pids")])
def test_a_missing_limit_is_seen(tmp_path: Path, limit: dict[str, str], lock: str) -> None:
    assert names(a_machine(tmp_path, **limit)) == [lock]  # type: ignore[arg-type]  # only these two keys


def test_the_first_versions_way_of_saying_unlimited_is_known(tmp_path: Path) -> None:
    assert names(a_machine(tmp_path, memory="9223372036854771712", first_version=True)) == ["memory"]


def test_what_cannot_be_read_is_missing(tmp_path: Path) -> None:
    # Whether it may mount, the jail finds out.
    assert names(tmp_path) == [name for name in CONTAINER_LOCKS if name != "mounts"]


def test_a_lock_that_nobody_knows_cannot_be_left_out() -> None:
    with pytest.raises(ConfigurationInvalid, match="BROWSER_SHELL_UNSAFE_MISSING_LOCKS"):
        read_settings({"BROWSER_SHELL_UNSAFE_MISSING_LOCKS": "memory,everything"})


@pytest.mark.promise("container:all-locks-or-no-start")
@pytest.mark.parametrize("env", [{}, {"BROWSER_SHELL_CONTAINER": ""}, {"BROWSER_SHELL_CONTAINER": "0"}])
def test_no_variable_makes_the_image_forget_that_it_is_one(
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


def test_elsewhere_no_lock_is_asked_for_unless_the_variable_asks() -> None:
    assert not read_settings({}).in_container
    assert not read_settings({}).needs_lock("mounts")
    assert read_settings({"BROWSER_SHELL_CONTAINER": "1"}).needs_lock("mounts")


@pytest.mark.promise("container:all-locks-or-no-start")
@pytest.mark.parametrize("option", [("--unsafe-no-jail",), ("--unsafe-attach", "9222")])
def test_the_image_has_no_switch_for_its_jail(
    option: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Every lock is waived, so that nothing else refuses.
    monkeypatch.setenv("BROWSER_SHELL_CONTAINER", "1")
    monkeypatch.setenv("BROWSER_SHELL_UNSAFE_MISSING_LOCKS", ",".join(CONTAINER_LOCKS))
    monkeypatch.setattr("browser_shell.commands.serve._log_to_stderr", lambda: None)
    assert run(["stdio", *option]) != 0
    assert "the image runs its own browser in its jail" in capsys.readouterr().err
