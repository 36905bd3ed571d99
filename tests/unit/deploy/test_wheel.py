"""The wheel contains the files of this repository."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src"
_EXCLUDED = {"__pycache__"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build like the images do, without downloads."""
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (path,) = directory.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_contains_every_file_of_the_package_unchanged(wheel: zipfile.ZipFile) -> None:
    sources = {
        path.relative_to(SOURCES).as_posix(): path.read_bytes()
        for path in (SOURCES / "browser_shell").rglob("*")
        if path.is_file() and not _EXCLUDED & set(path.parts)
    }
    shipped = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == sources


def test_the_wheel_contains_files_that_are_read_but_not_imported(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert "browser_shell/browser/chromium/jail_child.py" in names
    page = {name for name in names if name.startswith("browser_shell/viewer/page/")}
    assert {Path(name).suffix for name in page} >= {".html", ".js", ".css", ".svg"}


def test_the_wheel_contains_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    (points,) = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    parser = configparser.ConfigParser()
    parser.read_string(wheel.read(points).decode())
    assert set(parser["console_scripts"]) == {"browser-shell"}
    assert [name for name in wheel.namelist() if name.endswith("/licenses/LICENSE")]
