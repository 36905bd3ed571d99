"""Commands of the how-to pages that need neither a browser nor the internet work as printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def commands(page: str) -> list[str]:
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like an installed clone."""
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    return tmp_path


def run(command: str, folder: Path, **env: str) -> str:
    done = subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_own_tokens(folder: Path) -> None:
    keygen, _, make = commands("own-tokens.md")
    assert run(keygen, folder).startswith("JWT_PUBLIC_KEY=")
    assert run(make, folder).count(".") == 2


def test_policy_for_one_site(folder: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "policy-for-one-site.md").read_text(encoding="utf-8")
    found = re.search(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found
    (folder / "policy.json").write_text(found[1], encoding="utf-8")
    check = commands("policy-for-one-site.md")[0].partition(".venv/bin/browser-shell serve")[0]
    # The answers of DNS are given, so nothing is looked up.
    check = check.replace('/cart"}', '/cart", "dns": {"shop.example.com": ["93.184.216.34"]}}')
    verdicts = [json.loads(line)["verdict"] for line in run(check, folder).splitlines()]
    assert verdicts == ["allow", "deny", "deny"]


def test_incident(folder: Path) -> None:
    state = folder / "state" / "9222"
    shutil.copytree(ROOT / "tests" / "data" / "audit_log", state)
    shutil.copy(state / "audit.pub", folder / "your-copy.pub")
    env = {"BROWSER_SHELL_STATE_DIR": str(folder / "state")}
    run(".venv/bin/browser-shell audit checkpoint > checkpoint.json", folder, **env)
    verify, narrow, check_export, send = commands("look-into-an-incident.md")
    assert run(verify, folder, **env).startswith("ok ")
    run(narrow.replace("2027-01-15", "2020-01-01").replace(" --follow", ""), folder, **env)
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    assert run(check_export, folder, **env).startswith("ok ")
    assert json.loads(run(send.partition("|")[0], folder, **env))["kind"] == "CHECKPOINT"
