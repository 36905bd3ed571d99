"""`make up` on a system without a Chromium package: a real container, and a simulated os-release file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support.boxes import ROOT, free_port
from support.engine import Engine
from support.server import Server, start_process, wait_ready


def test_make_up_on_ubuntu_runs_the_container_and_prints_the_greeting(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("ID=ubuntu\nID_LIKE=debian\n")
    port, volume = free_port(), f"bsu-{os.getpid()}-{engine.name}"
    env = {
        **engine.env,
        "OS_RELEASE_FILE": str(tmp_path / "os-release"),
        "BROWSER_SHELL_CHROMIUM": "/nonexistent",
        "PUBLIC_PORT": str(port),
        "STATE_VOLUME": volume,
        "ENGINE": engine.name,
    }
    argv = [str(ROOT / "scripts" / "up")]
    server = Server(process=start_process(argv, env), runtime=tmp_path, state=tmp_path, env=env, argv=argv)
    try:
        wait_ready(server)
        output = "".join(server.lines)
        assert "this is Ubuntu" in output
        assert f"http://127.0.0.1:{port}/vnc/#token=" in output
        assert server.session("s").ok("get", "url") == {"url": "about:blank"}
        assert server.stop(signal.SIGINT) == 0
    finally:
        server.stop(signal.SIGKILL)
        engine.finish("volume", "rm", "--force", volume)
