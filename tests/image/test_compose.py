"""deploy/image/compose.yaml with every compose program of this machine."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
from pathlib import Path

from support.boxes import ROOT
from support.engine import Engine
from support.pages import wait_until

PODMAN_COMPOSE = ROOT / ".tools" / "podman-compose" / "bin" / "podman-compose"


def commands(engine: Engine) -> list[list[str]]:
    if engine.name == "podman":
        return [[str(PODMAN_COMPOSE)]]
    found = [["docker-compose"]] if shutil.which("docker-compose") else []
    plugin = subprocess.run(["docker", "compose", "version"], env=engine.env, capture_output=True, check=False)
    return [*found, *([["docker", "compose"]] if plugin.returncode == 0 else [])]


def status() -> int:
    connection = http.client.HTTPConnection("127.0.0.1", 8082, timeout=2)
    try:
        connection.request("GET", "/vnc/")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_compose_up_starts_the_box_with_all_locks(engine: Engine, tmp_path: Path) -> None:
    """A box that answers has all locks: it refuses to start without one."""
    folder = tmp_path / "image"
    shutil.copytree(ROOT / "deploy" / "image", folder)
    for path in (tmp_path, folder, folder / "config"):
        path.chmod(0o755)
    available = commands(engine)
    assert available, "no compose: scripts/test-image installs one"
    env = {**engine.env, "PATH": f"/usr/bin:{os.environ['PATH']}"}
    for number, command in enumerate(available):
        _check_start([*command, "-p", f"bsc{os.getpid()}x{number}"], folder, env)


def _check_start(command: list[str], folder: Path, env: dict[str, str]) -> None:
    def compose(*arguments: str) -> str:
        ended = subprocess.run(
            [*command, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=90, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    try:
        compose("up", "-d")
        wait_until(lambda: status() == 200, seconds=20, what=f"{command}: an answer on port 8082")
        logs = compose("logs")
        assert "http://127.0.0.1:8082/vnc/#token=" in logs
        assert "/etc/agent-browser/browser-shell.policy.json" in logs
    finally:
        compose("down", "-v")
