"""The folders that every browser gets anew, whatever the last one left there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.browser.chromium.directories import make_fresh_folders, seal_temporary
from browser_shell.browser.chromium.process import ChromiumSettings
from browser_shell.core.errors import BrowserUnavailable
from support.live_folders import make_endless_folder


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[ChromiumSettings]:
    root = tmp_path / "9222"
    (root / "home").mkdir(parents=True)
    yield ChromiumSettings(
        program=Path("/bin/true"),
        profile=root / "home" / "profile",
        home=root / "home",
        temporary=root / "t",
        marks=root,
        logs=root,
        port=9222,
        width=1,
        height=1,
        proxy_port=1,
        timezone="",
        account=None,
    )
    subprocess.run(["rm", "-rf", root], check=True)


def link_elsewhere(path: Path) -> None:
    elsewhere = path.parents[2] / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "file").touch()
    path.symlink_to(elsewhere)


def write_file(path: Path) -> None:
    path.write_text("payload")


def fill(path: Path) -> None:
    path.mkdir()
    (path / "lock").mkdir()
    (path / "lock" / "socket").touch()


@pytest.mark.parametrize("leave", [link_elsewhere, write_file, fill, make_endless_folder])
def test_a_browser_begins_with_empty_folders(settings: ChromiumSettings, leave: Callable[[Path], None]) -> None:
    leave(settings.temporary)
    leave(settings.profile)
    make_fresh_folders(settings)
    assert list(settings.temporary.iterdir()) == []
    assert not settings.temporary.is_symlink()
    assert settings.temporary.stat().st_mode & 0o777 == 0o700
    assert not settings.profile.exists()
    elsewhere = settings.temporary.parents[1] / "elsewhere"
    assert leave is not link_elsewhere or [path.name for path in elsewhere.iterdir()] == ["file"]


def test_what_was_left_is_gone_and_not_only_out_of_the_way(settings: ChromiumSettings) -> None:
    fill(settings.temporary)
    seal_temporary(settings)
    assert settings.temporary.stat().st_mode & 0o777 == 0o500
    make_fresh_folders(settings)
    assert {path.name for path in settings.temporary.parent.iterdir()} == {"home", "t"}


def test_folders_that_cannot_be_made_are_a_fault_of_the_browser_and_not_the_end_of_the_server(
    settings: ChromiumSettings,
) -> None:
    nowhere = replace(settings, temporary=settings.home / "missing" / "t")
    with pytest.raises(BrowserUnavailable):
        make_fresh_folders(nowhere)


def test_a_folder_that_has_become_a_link_is_not_sealed_but_a_fault(settings: ChromiumSettings) -> None:
    link_elsewhere(settings.temporary)
    elsewhere = settings.temporary.resolve()
    elsewhere.chmod(0o755)
    with pytest.raises(BrowserUnavailable):
        seal_temporary(settings)
    assert elsewhere.stat().st_mode & 0o777 == 0o755
