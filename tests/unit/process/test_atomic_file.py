from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from browser_shell.process.atomic_file import replace_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    replace_file(path, b"old")
    return path


def test_a_file_is_replaced_and_only_its_owner_can_read_it(path: Path) -> None:
    path.chmod(0o644)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json"]


def test_a_failed_write_keeps_the_old_content(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no room"):
            replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    replace_file(path, b"newer")
    assert path.read_bytes() == b"newer"


def test_the_content_is_on_disk_before_the_name_and_the_name_before_the_return(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bytes]] = []
    monkeypatch.setattr(
        os, "fsync", lambda file: synced.append((stat.S_ISDIR(os.fstat(file).st_mode), path.read_bytes()))
    )
    replace_file(path, b"new")
    assert synced == [(False, b"old"), (True, b"new")]


def test_symbolic_links_are_replaced_and_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"untouched")
    for link in (path, path.with_name(".state.json.new")):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    replace_file(path, b"new")
    assert (path.read_bytes(), path.is_symlink()) == (b"new", False)
    assert target.read_bytes() == b"untouched"
