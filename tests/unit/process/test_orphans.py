"""Process identities, liveness, memory limits and saved identities, with real processes."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.process.orphans import (
    ProcessIdentity,
    end_saved_process,
    identity_of,
    is_alive,
    limit_memory,
    save_identity,
)

MIB = 1024 * 1024


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as sleeping:
        yield sleeping
        sleeping.kill()


@pytest.fixture
def identity(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    found = identity_of(process.pid)
    assert found is not None
    return found


def test_a_zombie_is_not_alive(process: subprocess.Popen[bytes], identity: ProcessIdentity) -> None:
    assert is_alive(identity)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identity_of(process.pid) is None
    assert not is_alive(identity)
    process.wait()
    assert not is_alive(identity)


def test_a_process_with_a_reused_pid_has_another_identity(identity: ProcessIdentity) -> None:
    assert not is_alive(replace(identity, start_ticks=1))


def test_a_memory_limit_is_set_and_never_raised(identity: ProcessIdentity) -> None:
    for max_bytes in (100 * MIB, 200 * MIB):
        assert limit_memory(identity, max_bytes)
        assert resource.prlimit(identity.pid, resource.RLIMIT_DATA) == (100 * MIB, 100 * MIB)


def test_a_process_with_a_reused_pid_gets_no_memory_limit(identity: ProcessIdentity) -> None:
    assert not limit_memory(replace(identity, start_ticks=1), 1000 * MIB)
    assert resource.prlimit(identity.pid, resource.RLIMIT_DATA) == resource.getrlimit(resource.RLIMIT_DATA)


@pytest.mark.promise("process:no-orphan")
def test_a_saved_process_is_ended_once(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    save_identity(tmp_path / "chromium", process.pid)
    assert end_saved_process(tmp_path / "chromium")
    assert process.wait(5) == -9
    assert not (tmp_path / "chromium").exists()
    assert not end_saved_process(tmp_path / "chromium")


def test_a_process_with_a_reused_pid_is_not_ended(identity: ProcessIdentity, tmp_path: Path) -> None:
    (tmp_path / "chromium").write_text(f"{identity.pid} {identity.start_ticks + 1}\n")
    assert not end_saved_process(tmp_path / "chromium")
    assert identity_of(identity.pid) == identity


def test_a_link_in_place_of_an_identity_file_is_replaced(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text("audit records\n")
    (tmp_path / "chromium").symlink_to(tmp_path / "audit.jsonl")
    save_identity(tmp_path / "chromium", process.pid)
    assert (tmp_path / "audit.jsonl").read_text() == "audit records\n"
    assert end_saved_process(tmp_path / "chromium")


@pytest.mark.parametrize("content", ["", "1", "one two", "1 2 3"])
def test_a_file_without_an_identity_is_removed(tmp_path: Path, content: str) -> None:
    (tmp_path / "chromium").write_text(content)
    assert not end_saved_process(tmp_path / "chromium")
    assert not (tmp_path / "chromium").exists()


def test_a_directory_in_place_of_an_identity_file_does_not_stop_the_server(tmp_path: Path) -> None:
    (tmp_path / "chromium").mkdir()
    assert not end_saved_process(tmp_path / "chromium")
