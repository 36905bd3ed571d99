"""Files in directories that a compromised process can write to, and atomic replacement."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from browser_shell.core.errors import OutputTooLarge, SandboxUnavailable
from browser_shell.process.files import create_file, read_plain_file, replace_file, take_file
from support.processes import open_files

RECORDS = b"audit records\n"


def make_symlink(path: Path) -> None:
    path.symlink_to(path.with_name("audit.jsonl"))


def make_dangling_symlink(path: Path) -> None:
    path.symlink_to(path.with_name("absent"))


def make_hard_link(path: Path) -> None:
    path.hardlink_to(path.with_name("audit.jsonl"))


def make_file(path: Path) -> None:
    path.write_bytes(b"output of an earlier run")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(RECORDS)
    return path


def test_a_new_file_is_for_its_owner_only_and_not_inherited(tmp_path: Path) -> None:
    with create_file(tmp_path / "new") as file:
        file.write(b"output")
        assert not os.get_inheritable(file.fileno())
    assert (tmp_path / "new").read_bytes() == b"output"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


@pytest.mark.parametrize("make_entry", [make_file, make_symlink, make_dangling_symlink, make_hard_link, os.mkfifo])
def test_an_entry_is_replaced_by_a_new_file_and_its_target_is_left_unchanged(
    tmp_path: Path, records: Path, make_entry: Callable[[Path], None]
) -> None:
    path = tmp_path / "new"
    make_entry(path)
    with create_file(path) as file:
        file.write(b"output")
    assert stat.S_ISREG(path.lstat().st_mode)
    assert path.read_bytes() == b"output"
    assert records.read_bytes() == RECORDS
    assert not (tmp_path / "absent").exists()


def test_a_fifo_with_a_reader_receives_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "new")
    reader = os.open(tmp_path / "new", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with create_file(tmp_path / "new") as file:
            file.write(b"output")
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_an_entry_that_appears_after_the_removal_is_an_error(
    tmp_path: Path, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_symlink(tmp_path / "new")
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # As if the link were made again at once.
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "new")
    assert records.read_bytes() == RECORDS


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    files = open_files()
    with pytest.raises(OSError, match="directory"):
        create_file(tmp_path / "new")
    assert open_files() == files


def test_a_file_is_read_up_to_its_limit(tmp_path: Path, records: Path) -> None:
    assert read_plain_file(records, max_bytes=len(RECORDS)) == RECORDS
    assert read_plain_file(records, max_bytes=len(RECORDS) - 1) is None
    assert read_plain_file(tmp_path / "absent", max_bytes=100) is None


@pytest.mark.parametrize("make_entry", [make_symlink, make_dangling_symlink, os.mkfifo, Path.mkdir])
def test_only_regular_files_are_read(tmp_path: Path, records: Path, make_entry: Callable[[Path], None]) -> None:
    path, files = tmp_path / "out", open_files()
    make_entry(path)
    assert read_plain_file(path, max_bytes=100) is None
    with pytest.raises(SandboxUnavailable):
        take_file(path, max_bytes=100)
    assert records.read_bytes() == RECORDS
    assert open_files() == files


def test_a_taken_file_is_removed(tmp_path: Path, records: Path) -> None:
    assert take_file(records, max_bytes=len(RECORDS)) == RECORDS
    assert not records.exists()


def test_a_file_that_is_too_large_is_removed_too(records: Path) -> None:
    with pytest.raises(OutputTooLarge):
        take_file(records, max_bytes=len(RECORDS) - 1)
    assert not records.exists()


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
