"""The directories of a server: short enough for the sockets that are made in them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser_shell.browser.chromium.runtime_dirs import claimed_layout
from browser_shell.core.errors import ConfigurationInvalid

_LONGEST_SOCKET = 107
_OF_CHROMIUM = "org.chromium.Chromium.XXXXXX/SingletonSocket"


def base_for(tmp_path: Path, *, length: int) -> Path:
    """A directory for a server on port 9222, whose own directory has a path of this length."""
    return tmp_path / ("r" * (length - len(f"{tmp_path}//9222")))


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Not pytest's, which may be long."""
    with tempfile.TemporaryDirectory(prefix="bsh-", dir="/tmp") as path:
        yield Path(path)


def test_the_longest_directory_still_has_room_for_chromiums_lock(short_path: Path) -> None:
    with claimed_layout(base_for(short_path, length=60), 9222, None) as layout:
        assert len(str(layout.root)) == 60
        assert len(str(layout.temporary / _OF_CHROMIUM)) <= _LONGEST_SOCKET


def test_a_longer_one_is_refused_by_name(short_path: Path) -> None:
    with (
        pytest.raises(ConfigurationInvalid, match=r"BROWSER_SHELL_RUNTIME_DIR: .* is too long a path for sockets"),
        claimed_layout(base_for(short_path, length=61), 9222, None),
    ):
        pass
