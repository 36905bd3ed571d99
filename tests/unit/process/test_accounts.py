"""Ownership of directories, and the group that opens the container engine's socket."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.accounts import (
    Account,
    claim_directory,
    group_for_socket,
    make_private_directory,
    transfer_directory,
)
from support.live_folders import make_endless_folder

ME = Account(name="me", uid=os.geteuid(), gid=os.getegid())
OTHER = Account(name="other", uid=54321, gid=54322)


def test_a_new_directory_and_one_of_an_earlier_server_are_transferred(tmp_path: Path) -> None:
    (tmp_path / "run" / "9222" / "log").mkdir(parents=True)
    assert transfer_directory(tmp_path / "run", ME) == tmp_path / "run"
    assert transfer_directory(tmp_path / "new", ME).is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_everything_in_a_directory_is_transferred_except_the_targets_of_links(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "9222" / "log"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    (tmp_path / "run" / "jobs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    transfer_directory(tmp_path / "run", OTHER, excluded=("jobs",))
    paths = [tmp_path / "run", *(tmp_path / "run").rglob("*")]
    owners = {path.name: (path.lstat().st_uid, path.lstat().st_gid) for path in paths}
    assert owners.pop("jobs") == (0, 0)
    assert owners == dict.fromkeys(("run", "9222", "log", "file", "link"), (54321, 54322))
    assert {path.stat().st_uid for path in (tmp_path / "elsewhere", tmp_path / "elsewhere" / "file")} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_directory_that_is_replaced_by_a_link_during_the_walk_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run" / "9222").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    scandir = os.scandir

    @contextmanager
    def replace_after_scan(descriptor: int) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(descriptor) as entries:
            yield list(entries)
        if not (tmp_path / "run" / "9222").is_symlink():
            (tmp_path / "run" / "9222").rename(tmp_path / "run" / "9223")
            (tmp_path / "run" / "9222").symlink_to(tmp_path / "elsewhere")

    monkeypatch.setattr("browser_shell.process.accounts.os.scandir", replace_after_scan)
    with pytest.raises(ConfigurationInvalid, match="cannot be made the account other's"):
        transfer_directory(tmp_path / "run", OTHER)
    assert (tmp_path / "elsewhere" / "file").stat().st_uid == 0


def test_directories_nested_without_limit_do_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    make_endless_folder(tmp_path / "run" / "9222" / "t")
    try:
        transfer_directory(tmp_path / "run", ME)
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "run"], check=True)


@pytest.mark.promise("start:only-its-own-directories")
@pytest.mark.parametrize("name", ["etc", ".bashrc", "9222.old"])
def test_a_directory_with_other_entries_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigurationInvalid, match=name):
        transfer_directory(tmp_path, ME)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationInvalid):
        transfer_directory(tmp_path / "link", ME)


def test_entries_of_another_profile_are_excluded_by_name(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "strange").mkdir(parents=True)
    transfer_directory(tmp_path, ME, excluded=("jobs",))
    with pytest.raises(ConfigurationInvalid, match="jobs"):
        transfer_directory(tmp_path, ME)


@pytest.mark.promise("start:only-its-own-directories")
def test_a_directory_of_another_account_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ConfigurationInvalid):
        claim_directory(tmp_path / "full", OTHER)
    (tmp_path / "link").symlink_to(tmp_path / "full")
    with pytest.raises(ConfigurationInvalid):
        claim_directory(tmp_path / "link", ME)
    claim_directory(tmp_path / "new", ME)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_the_group_of_the_engines_socket_is_added_unless_it_is_root(tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    with pytest.raises(ConfigurationInvalid, match="No such file"):
        group_for_socket(path, OTHER)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        assert group_for_socket(path, OTHER) == ()
        path.chmod(0o600)
        with pytest.raises(ConfigurationInvalid, match="root alone"):
            group_for_socket(path, OTHER)
        if os.geteuid() == 0:
            path.chmod(0o660)
            with pytest.raises(ConfigurationInvalid, match="root alone"):
                group_for_socket(path, OTHER)
            os.chown(path, 0, 777)
            assert group_for_socket(path, OTHER) == (777,)
            os.chown(path, 0, OTHER.gid)
            assert group_for_socket(path, OTHER) == ()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationInvalid, match="no socket"):
        group_for_socket(tmp_path / "file", OTHER)


@pytest.mark.parametrize("make_entry", [Path.touch, lambda path: path.symlink_to(path.parent)], ids=["file", "link"])
def test_a_private_directory_replaces_neither_a_file_nor_a_link(
    tmp_path: Path, make_entry: Callable[[Path], None]
) -> None:
    make_entry(tmp_path / "x")
    with pytest.raises(ConfigurationInvalid, match="must be a directory"):
        make_private_directory(tmp_path / "x", owner=None)
