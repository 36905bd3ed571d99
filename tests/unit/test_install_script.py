"""scripts/install: on a machine that it cannot serve, and which Python it takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_machine_without_apt_is_pointed_to_the_container(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "grep", "id", "env"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    ended = subprocess.run(
        [tmp_path / "bash", ROOT / "scripts" / "install"],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert "docker compose up" in ended.stderr


def taken_python(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """With a python3 that comes first in the PATH."""
    (tmp_path / "python3").symlink_to(sys.executable)
    script = """
fail() { printf 'install: %s\\n' "$*" >&2; exit 1; }
source <(sed -n '/^find_python()/,/^}/p' scripts/install)
find_python
"""
    return subprocess.run(
        ["/bin/bash", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_the_systems_python_comes_before_one_in_the_path(tmp_path: Path) -> None:
    assert taken_python(tmp_path).stdout == "/usr/bin/python3\n"


def test_a_python_that_was_named_is_taken_or_refused_and_never_replaced(tmp_path: Path) -> None:
    named = str(tmp_path / "python3")
    assert taken_python(tmp_path, PYTHON=named).stdout == f"{named}\n"
    (tmp_path / "python3").unlink()
    refused = taken_python(tmp_path, PYTHON="/bin/false")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "/bin/false is not that" in refused.stderr
