"""A server that was started as root takes only what is its own."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.accounts import Account
from browser_shell.process.privileges import claim_directory, group_for_socket, hand_over
from support.live_folders import make_endless_folder

ME = Account(name="me", uid=os.geteuid(), gid=os.getegid())


def test_a_new_directory_and_what_earlier_servers_left_are_handed_over(tmp_path: Path) -> None:
    (tmp_path / "run" / "9222" / "log").mkdir(parents=True)
    assert hand_over(tmp_path / "run", ME) == tmp_path / "run"
    assert hand_over(tmp_path / "new", ME).is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_all_that_is_there_is_given_and_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    other = Account(name="other", uid=54321, gid=54322)
    folder = tmp_path / "run" / "9222" / "log"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    (tmp_path / "run" / "jobs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    hand_over(tmp_path / "run", other, beside=("jobs",))
    given = [tmp_path / "run", *(tmp_path / "run").rglob("*")]
    owners = {path.name: (path.lstat().st_uid, path.lstat().st_gid) for path in given}
    assert owners.pop("jobs") == (0, 0)
    assert owners == dict.fromkeys(("run", "9222", "log", "file", "link"), (54321, 54322))
    assert {path.stat().st_uid for path in (tmp_path / "elsewhere", tmp_path / "elsewhere" / "file")} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever owns the folder around it. No real one can be told when to do it."""
    other = Account(name="other", uid=54321, gid=54322)
    (tmp_path / "run" / "9222").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    look = os.scandir

    @contextmanager
    def swapped_after_the_look(handle: int) -> Iterator[list[os.DirEntry[str]]]:
        with look(handle) as entries:
            yield list(entries)
        if not (tmp_path / "run" / "9222").is_symlink():
            (tmp_path / "run" / "9222").rename(tmp_path / "run" / "9223")
            (tmp_path / "run" / "9222").symlink_to(tmp_path / "elsewhere")

    monkeypatch.setattr("browser_shell.process.privileges.os.scandir", swapped_after_the_look)
    with pytest.raises(ConfigurationInvalid, match="cannot be made the account other's"):
        hand_over(tmp_path / "run", other)
    assert (tmp_path / "elsewhere" / "file").stat().st_uid == 0


def test_folders_without_end_do_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    make_endless_folder(tmp_path / "run" / "9222" / "t")
    try:
        hand_over(tmp_path / "run", ME)
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "run"], check=True)


@pytest.mark.promise("start:only-its-own-directories")
@pytest.mark.parametrize("name", ["etc", ".bashrc", "9222.old"])
def test_a_directory_that_holds_anything_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigurationInvalid, match=name):
        hand_over(tmp_path, ME)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationInvalid):
        hand_over(tmp_path / "link", ME)


def test_what_stands_beside_is_not_handed_over(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "strange").mkdir(parents=True)
    hand_over(tmp_path, ME, beside=("jobs",))
    with pytest.raises(ConfigurationInvalid, match="jobs"):
        hand_over(tmp_path, ME)


@pytest.mark.promise("start:only-its-own-directories")
def test_a_directory_of_somebody_else_is_not_claimed(tmp_path: Path) -> None:
    other = Account(name="other", uid=os.geteuid() + 12345, gid=os.getegid() + 12345)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ConfigurationInvalid):
        claim_directory(tmp_path / "full", other)
    (tmp_path / "link").symlink_to(tmp_path / "full")
    with pytest.raises(ConfigurationInvalid):
        claim_directory(tmp_path / "link", ME)
    claim_directory(tmp_path / "new", ME)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_one_group_and_never_roots_opens_the_engines_socket(tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    account = Account(name="other", uid=54321, gid=54321)
    with pytest.raises(ConfigurationInvalid, match="No such file"):
        group_for_socket(path, account)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        assert group_for_socket(path, account) == ()
        path.chmod(0o600)
        with pytest.raises(ConfigurationInvalid, match="root alone"):
            group_for_socket(path, account)
        if os.geteuid() == 0:
            path.chmod(0o660)
            with pytest.raises(ConfigurationInvalid, match="root alone"):
                group_for_socket(path, account)
            os.chown(path, 0, 777)
            assert group_for_socket(path, account) == (777,)
            os.chown(path, 0, 54321)
            assert group_for_socket(path, account) == ()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationInvalid, match="no socket"):
        group_for_socket(tmp_path / "file", account)
