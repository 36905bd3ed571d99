"""scripts/install on a machine that it cannot serve."""

from __future__ import annotations

import shutil
import subprocess
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
