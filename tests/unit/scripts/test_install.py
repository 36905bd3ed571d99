"""scripts/install: systems that it refuses, and the Python that it uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nID_LIKE=debian\n'
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'


def install(directory: Path, os_release: str, *arguments: str, chromium: str) -> subprocess.CompletedProcess[str]:
    """Run the script without apt, so that it stops before it would install packages."""
    programs = directory / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "grep", "id", "env"):
        (programs / name).symlink_to(str(shutil.which(name)))
    (directory / "os-release").write_text(os_release)
    return subprocess.run(
        [programs / "bash", ROOT / "scripts" / "install", *arguments],
        env={
            "PATH": str(programs),
            "HOME": str(directory),
            "OS_RELEASE_FILE": str(directory / "os-release"),
            "BROWSER_SHELL_CHROMIUM": chromium,
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_machine_without_apt_is_pointed_to_the_container(tmp_path: Path) -> None:
    ended = install(tmp_path, "ID=fedora\n", chromium="/nonexistent")
    assert ended.returncode == 1
    assert "docker compose up" in ended.stderr


@pytest.mark.parametrize("os_release", [UBUNTU, 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', 'ID="ubuntu"\n'])
def test_ubuntu_without_chromium_ends_with_exit_code_3(tmp_path: Path, os_release: str) -> None:
    ended = install(tmp_path, os_release, chromium="/nonexistent")
    assert ended.returncode == 3
    assert "Ubuntu" in ended.stderr
    assert "make up runs the container image" in ended.stderr


@pytest.mark.parametrize("os_release", [DEBIAN, "ID=debian\nHOME_URL=https://ubuntu.example\n", ""])
def test_other_systems_install_the_chromium_package(tmp_path: Path, os_release: str) -> None:
    ended = install(tmp_path, os_release, chromium="/nonexistent")
    assert ended.returncode == 1
    assert " chromium" in ended.stderr.partition("other means:")[2]


def test_ubuntu_with_a_chromium_binary_is_like_debian(tmp_path: Path) -> None:
    ended = install(tmp_path, UBUNTU, chromium="/bin/true")
    assert ended.returncode == 1
    assert " chromium" not in ended.stderr.partition("other means:")[2]


def test_a_developer_on_ubuntu_gets_everything_but_chromium(tmp_path: Path) -> None:
    ended = install(tmp_path, UBUNTU, "--dev", chromium="/nonexistent")
    assert ended.returncode == 1
    assert "continuing without Chromium" in ended.stderr
    packages = ended.stderr.partition("other means:")[2].split()
    assert "redis-server" in packages
    assert "chromium" not in packages


def find_python(directory: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run find_python with a python3 in `directory` that comes first in the PATH."""
    (directory / "python3").symlink_to(sys.executable)
    script = """
fail() { printf 'install: %s\\n' "$*" >&2; exit 1; }
source <(sed -n '/^find_python()/,/^}/p' scripts/install)
find_python
"""
    return subprocess.run(
        ["/bin/bash", "-c", script],
        env={"PATH": f"{directory}:/usr/bin:/bin", **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_the_systems_python_is_preferred_to_the_first_in_the_path(tmp_path: Path) -> None:
    assert find_python(tmp_path).stdout == "/usr/bin/python3\n"


def test_a_python_named_by_the_environment_is_used_or_refused_but_not_replaced(tmp_path: Path) -> None:
    python = str(tmp_path / "python3")
    assert find_python(tmp_path, PYTHON=python).stdout == f"{python}\n"
    (tmp_path / "python3").unlink()
    refused = find_python(tmp_path, PYTHON="/bin/false")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "/bin/false does not qualify" in refused.stderr
