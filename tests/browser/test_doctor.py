"""`browser-shell doctor` tries the real thing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any


def doctor(tmp_path: Path, **changed: str) -> tuple[int, dict[str, dict[str, Any]]]:
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "PUBLIC_PORT": "0",
        "BROWSER_SHELL_STATE_DIR": str(tmp_path),
        **changed,
    }
    command = [str(Path(sys.executable).with_name("browser-shell")), "doctor", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=False)
    return done.returncode, {finding["name"]: finding for finding in json.loads(done.stdout)}


def test_a_machine_that_runs_the_tests_is_healthy(tmp_path: Path) -> None:
    exit_code, findings = doctor(tmp_path)
    assert {name: finding["detail"] for name, finding in findings.items() if not finding["healthy"]} == {}
    assert exit_code == 0
    assert {"jail", "display", "Chromium and sandbox", "key", "policy", "clock"} <= findings.keys()


def test_a_missing_browser_a_bad_key_and_a_taken_port_are_named_with_a_fix(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        exit_code, findings = doctor(
            tmp_path,
            PUBLIC_PORT=str(taken.getsockname()[1]),
            JWT_PUBLIC_KEY="bm90IGEga2V5",
            BROWSER_SHELL_CHROMIUM="/nonexistent/chromium",
        )
    sick = {name: finding for name, finding in findings.items() if not finding["healthy"]}
    assert exit_code == 1
    assert sick.keys() == {"public port", "key", "programs"}
    assert all(finding["fix"] for finding in sick.values())
