"""`browser-shell doctor` with real programs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any


def doctor(tmp_path: Path, **env_changes: str) -> tuple[int, dict[str, dict[str, Any]]]:
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "PUBLIC_PORT": "0",
        "BROWSER_SHELL_STATE_DIR": str(tmp_path),
        **env_changes,
    }
    command = [str(Path(sys.executable).with_name("browser-shell")), "doctor", "--json"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=False)
    return ended.returncode, {finding["name"]: finding for finding in json.loads(ended.stdout)}


def test_a_machine_that_runs_the_tests_is_healthy(tmp_path: Path) -> None:
    exit_code, findings = doctor(tmp_path)
    assert {name: finding["detail"] for name, finding in findings.items() if not finding["healthy"]} == {}
    assert exit_code == 0
    assert {"jail", "display", "Chromium and sandbox", "key", "policy", "clock"} <= findings.keys()


def test_a_missing_browser_a_bad_key_and_a_port_in_use_are_reported_with_a_fix(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        exit_code, findings = doctor(
            tmp_path,
            PUBLIC_PORT=str(listener.getsockname()[1]),
            JWT_PUBLIC_KEY="bm90IGEga2V5",
            BROWSER_SHELL_CHROMIUM="/nonexistent/chromium",
        )
    failures = {name: finding for name, finding in findings.items() if not finding["healthy"]}
    assert exit_code == 1
    assert failures.keys() == {"public port", "key", "programs"}
    assert all(finding["fix"] for finding in failures.values())
