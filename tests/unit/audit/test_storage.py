from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from support.audit_logs import a_record, a_writer, checked


@pytest.mark.promise("audit:private")
async def test_only_the_owner_can_read_the_files(path: Path) -> None:
    path.touch(mode=0o644)
    with a_writer(path, rotate_bytes=1500) as audit:
        for _ in range(10):
            await audit.record(a_record())
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"audit.key", "audit.head", "audit.jsonl", "audit-000001.jsonl"} <= set(modes)


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationInvalid):
        a_writer(tmp_path / "link")
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]


def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o644)
    holder = os.open(pipe, os.O_RDWR)  # Otherwise opening it to write would wait for a reader.
    try:
        with pytest.raises(ConfigurationInvalid):
            a_writer(pipe)
    finally:
        os.close(holder)
    assert pipe.stat().st_mode & 0o777 == 0o644


def test_a_missing_directory_prevents_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid):
        a_writer(tmp_path / "no" / "audit.jsonl")


def test_a_second_writer_is_refused(path: Path) -> None:
    with a_writer(path), pytest.raises(ConfigurationInvalid):
        a_writer(path)
    assert checked(path).sound
