"""`browser-shell health` without a running server. tests/browser/test_health.py has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser_shell.commands.cli import run


@pytest.mark.parametrize("port", ["0", "9222"])
def test_health_without_a_server_fails(
    port: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_SHELL_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("BROWSER_REMOTE_DEBUGGING_PORT", port)
    assert run(["health"]) == 1
    assert "no server answers" in capsys.readouterr().out


def test_health_refuses_to_choose_between_several_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_SHELL_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("BROWSER_REMOTE_DEBUGGING_PORT", "0")
    for port in ("1", "2"):
        (tmp_path / port).mkdir()
        (tmp_path / port / "health.sock").touch()
    assert run(["health"]) == 2
