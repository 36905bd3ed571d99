"""scripts/check-mirror on small trees."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def check(tree: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Run the script, with an empty list of covered modules, on a tree with these files."""
    for name in ("src/browser_shell/__init__.py", "scripts/check-mirror", "tests/unit/deploy/test_any.py", *files):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    text = (ROOT / "scripts" / "check-mirror").read_text(encoding="utf-8")
    script = tree / "scripts" / "check-mirror"
    script.write_text(re.sub(r"^COVERED_BY = \{.*?^\}", "COVERED_BY = {}", text, flags=re.DOTALL | re.MULTILINE))
    return subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=30, check=False)


def test_complete_pairs_pass(tmp_path: Path) -> None:
    ended = check(
        tmp_path,
        *("src/browser_shell/a/b.py", "tests/unit/a/test_b.py", "scripts/c-d", "tests/unit/scripts/test_c_d.py"),
    )
    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.parametrize(
    ("file", "finding"),
    [
        ("src/browser_shell/a/b.py", "modules without a unit test:\n  a/b\n"),
        ("tests/unit/a/test_b.py", "unit tests without a module:\n  a/b\n"),
        ("tests/unit/scripts/test_gone.py", "unit tests without a module:\n  scripts/gone\n"),
    ],
)
def test_an_incomplete_pair_is_reported(tmp_path: Path, file: str, finding: str) -> None:
    ended = check(tmp_path, file)
    assert ended.returncode == 1
    assert ended.stdout.endswith(finding)
