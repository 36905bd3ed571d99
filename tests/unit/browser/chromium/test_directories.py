"""Fresh directories for each browser, whatever an earlier browser left in their place."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.browser.chromium.directories import forbid_new_temporary_files, make_fresh_directories
from browser_shell.browser.chromium.process import ChromiumSettings
from browser_shell.core.errors import BrowserUnavailable
from support.chromium_settings import chromium_settings
from support.live_folders import make_endless_folder


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[ChromiumSettings]:
    root = tmp_path / "9222"
    (root / "home").mkdir(parents=True)
    yield chromium_settings(root)
    subprocess.run(["rm", "-rf", root], check=True)


def make_link(path: Path) -> None:
    elsewhere = path.parents[2] / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "file").touch()
    path.symlink_to(elsewhere)


def make_file(path: Path) -> None:
    path.write_text("payload")


def make_full_directory(path: Path) -> None:
    path.mkdir()
    (path / "lock").mkdir()
    (path / "lock" / "socket").touch()


@pytest.mark.parametrize("make_entry", [make_link, make_file, make_full_directory, make_endless_folder])
def test_a_browser_starts_with_empty_directories(
    settings: ChromiumSettings, make_entry: Callable[[Path], None]
) -> None:
    make_entry(settings.temporary)
    make_entry(settings.profile)
    make_fresh_directories(settings)
    assert list(settings.temporary.iterdir()) == []
    assert not settings.temporary.is_symlink()
    assert settings.temporary.stat().st_mode & 0o777 == 0o700
    assert not settings.profile.exists()
    elsewhere = settings.temporary.parents[1] / "elsewhere"
    assert make_entry is not make_link or [path.name for path in elsewhere.iterdir()] == ["file"]


def test_old_directories_are_removed_and_not_only_renamed(settings: ChromiumSettings) -> None:
    make_full_directory(settings.temporary)
    forbid_new_temporary_files(settings)
    assert settings.temporary.stat().st_mode & 0o777 == 0o500
    make_fresh_directories(settings)
    assert {path.name for path in settings.temporary.parent.iterdir()} == {"home", "t"}


def test_directories_that_cannot_be_created_make_the_browser_unavailable(settings: ChromiumSettings) -> None:
    settings = replace(settings, temporary=settings.home / "missing" / "t")
    with pytest.raises(BrowserUnavailable):
        make_fresh_directories(settings)


def test_the_mode_of_a_links_target_is_not_changed(settings: ChromiumSettings) -> None:
    make_link(settings.temporary)
    elsewhere = settings.temporary.resolve()
    elsewhere.chmod(0o755)
    with pytest.raises(BrowserUnavailable):
        forbid_new_temporary_files(settings)
    assert elsewhere.stat().st_mode & 0o777 == 0o755
