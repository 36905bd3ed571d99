"""Runtime directories: the length of their paths, and fresh directories for each browser."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.browser.chromium.runtime_dirs import (
    RuntimeLayout,
    claimed_layout,
    forbid_new_temporary_files,
    make_fresh_directories,
)
from browser_shell.core.errors import BrowserUnavailable, ConfigurationInvalid
from support.layouts import flat_layout
from support.live_folders import make_endless_folder

_MAX_SOCKET_PATH_BYTES = 107
_CHROMIUM_SOCKET = "org.chromium.Chromium.XXXXXX/SingletonSocket"


def base_for(tmp_path: Path, *, length: int) -> Path:
    """Return a base directory below which the directory for port 9222 has a path of this length."""
    return tmp_path / ("r" * (length - len(f"{tmp_path}//9222")))


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory with a short path. The one of pytest may be long."""
    with tempfile.TemporaryDirectory(prefix="bsh-", dir="/tmp") as path:
        yield Path(path)


def test_the_longest_directory_leaves_room_for_chromiums_socket(short_path: Path) -> None:
    with claimed_layout(base_for(short_path, length=60), 9222, None) as layout:
        assert len(str(layout.root)) == 60
        assert len(str(layout.temporary / _CHROMIUM_SOCKET)) <= _MAX_SOCKET_PATH_BYTES


def test_a_longer_directory_is_refused_with_the_name_of_its_setting(short_path: Path) -> None:
    with (
        pytest.raises(ConfigurationInvalid, match=r"BROWSER_SHELL_RUNTIME_DIR: .* is too long a path for sockets"),
        claimed_layout(base_for(short_path, length=61), 9222, None),
    ):
        pass


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[RuntimeLayout]:
    root = tmp_path / "9222"
    (root / "home").mkdir(parents=True)
    yield flat_layout(root)
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
def test_a_browser_starts_with_empty_directories(layout: RuntimeLayout, make_entry: Callable[[Path], None]) -> None:
    make_entry(layout.temporary)
    make_entry(layout.profile)
    make_fresh_directories(layout)
    assert list(layout.temporary.iterdir()) == []
    assert not layout.temporary.is_symlink()
    assert layout.temporary.stat().st_mode & 0o777 == 0o700
    assert not layout.profile.exists()
    elsewhere = layout.temporary.parents[1] / "elsewhere"
    assert make_entry is not make_link or [path.name for path in elsewhere.iterdir()] == ["file"]


def test_old_directories_are_removed_and_not_only_renamed(layout: RuntimeLayout) -> None:
    make_full_directory(layout.temporary)
    forbid_new_temporary_files(layout)
    assert layout.temporary.stat().st_mode & 0o777 == 0o500
    make_fresh_directories(layout)
    assert {path.name for path in layout.temporary.parent.iterdir()} == {"home", "t"}


def test_directories_that_cannot_be_created_make_the_browser_unavailable(layout: RuntimeLayout) -> None:
    layout = replace(layout, temporary=layout.root / "missing" / "t")
    with pytest.raises(BrowserUnavailable):
        make_fresh_directories(layout)


def test_the_mode_of_a_links_target_is_not_changed(layout: RuntimeLayout) -> None:
    make_link(layout.temporary)
    elsewhere = layout.temporary.resolve()
    elsewhere.chmod(0o755)
    with pytest.raises(BrowserUnavailable):
        forbid_new_temporary_files(layout)
    assert elsewhere.stat().st_mode & 0o777 == 0o755
