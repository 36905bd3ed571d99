"""Options that `browser-shell serve` and `stdio` refuse, and the modules that they import."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from browser_shell.commands.cli import run
from support.tokens import env_value, rsa_key


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """`serve` sends logs to the captured standard error, which is closed after the test."""
    handlers = list(logging.root.handlers)
    yield
    logging.root.handlers[:] = handlers
    structlog.reset_defaults()


@pytest.mark.parametrize("option", ["--port", "--unsafe-attach"])
@pytest.mark.parametrize("port", ["65536", "99999", "-1", "1e3", "٨٠", ""])
def test_an_invalid_port_is_refused(option: str, port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(["serve", f"{option}={port}", "--help"])
    assert f"{option}: must be a whole number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.promise("tokens:unsound-key-no-start")
def test_a_server_with_a_weak_key_does_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JWT_PUBLIC_KEY", env_value(rsa_key(1024)))
    assert run(["serve", "--port", "0"]) == 2
    assert "JWT_PUBLIC_KEY" in capsys.readouterr().err


@pytest.mark.promise("tokens:open-on-loopback-only")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "localhost"])
def test_access_without_tokens_is_limited_to_loopback_addresses(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--port", "0", "--unsafe-no-auth", "--host", host]) == 2
    assert "--unsafe-no-auth" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "option"),
    [
        (["--profile", "write", "--unsafe-no-jail"], "--unsafe-no-jail"),
        (["--profile", "write", "--unsafe-attach", "9222"], "--unsafe-attach"),
        (["--workspace", "."], "--workspace"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "stdio"])
def test_options_of_the_other_profile_are_refused(
    command: str, argv: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, *argv]) == 2
    assert option in capsys.readouterr().err


def test_the_browser_server_imports_neither_engine_client_nor_redis_client() -> None:
    code = (
        "import sys, browser_shell.commands.serve, browser_shell.server.browser_server;"
        "sys.exit(bool({'aiodocker', 'aiohttp', 'redis', 'limits'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
