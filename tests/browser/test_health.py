"""`browser-shell health` against a running server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.pages import wait_until
from support.server import Server, running_server


def health(server: Server) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("browser-shell")), "health", "--ready"]
    env = {**server.env, "BROWSER_REMOTE_DEBUGGING_PORT": str(server.devtools_port)}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)


def test_every_part_of_a_running_server_is_healthy(server: Server) -> None:
    result = health(server)
    assert result.returncode == 0, result.stdout
    for part in ("display", "chromium", "cdp", "driver", "egress"):
        assert f"{part} " in result.stdout


def test_a_server_without_its_browser_is_not_ready_and_recovers() -> None:
    with running_server({}) as server:
        display = server.mark("xvnc")
        os.kill(display, signal.SIGSTOP)  # The browser cannot restart while the display hangs.
        os.kill(server.mark("chromium"), signal.SIGKILL)
        wait_until(lambda: health(server).returncode == 1, seconds=20, what="a failing health check")
        os.kill(display, signal.SIGCONT)
        wait_until(lambda: health(server).returncode == 0, seconds=40, what="a passing health check")
