"""Runtime directories leave room for the longest path of a socket in them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser_shell.browser.chromium.runtime_dirs import claimed_layout
from browser_shell.core.errors import ConfigurationInvalid

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
