"""What the server of the image asks of its container, by what the kernel would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser_shell.container_locks import missing_locks
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.settings import CONTAINER_LOCKS, read_settings

STATUS = {
    "Uid": "1000\t1000\t1000\t1000",
    "CapPrm": "0000000000000000",
    "CapEff": "0000000000000000",
    "CapBnd": "0000000000000000",
    "NoNewPrivs": "1",
    "Seccomp": "2",
}
MOUNTS = "100 90 0:50 / / ro,relatime - overlay overlay rw\n101 100 0:51 / /tmp rw,nosuid - tmpfs tmpfs rw\n"


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


def names(root: Path) -> list[str]:
    return [lock.name for lock in missing_locks(root)]


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


@pytest.mark.parametrize(("limit", "lock"), [({"memory": "max"}, "memory"), ({"pids": "max"}, "pids")])
def test_a_missing_limit_is_seen(tmp_path: Path, limit: dict[str, str], lock: str) -> None:
    assert names(a_machine(tmp_path, **limit)) == [lock]  # type: ignore[arg-type]  # only these two keys


def test_the_first_versions_way_of_saying_unlimited_is_known(tmp_path: Path) -> None:
    assert names(a_machine(tmp_path, memory="9223372036854771712", first_version=True)) == ["memory"]


def test_what_cannot_be_read_is_missing(tmp_path: Path) -> None:
    assert names(tmp_path) == list(CONTAINER_LOCKS)


def test_a_lock_that_nobody_knows_cannot_be_left_out() -> None:
    with pytest.raises(ConfigurationInvalid, match="BROWSER_SHELL_UNSAFE_MISSING_LOCKS"):
        read_settings({"BROWSER_SHELL_UNSAFE_MISSING_LOCKS": "memory,everything"})
