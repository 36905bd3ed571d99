"""A server that was started as root takes only what is its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.account import Account
from browser_shell.process.privileges import hand_over

ME = Account(name="me", uid=os.geteuid(), gid=os.getegid())


def test_a_new_directory_and_what_earlier_servers_left_are_handed_over(tmp_path: Path) -> None:
    (tmp_path / "run" / "9222" / "log").mkdir(parents=True)
    assert hand_over(tmp_path / "run", ME) == tmp_path / "run"
    assert hand_over(tmp_path / "new", ME).is_dir()


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
