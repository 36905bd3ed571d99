"""The commands `token` and `health`, the flags of `serve`, and what the server says when it is ready."""

from __future__ import annotations

import base64
import logging
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from browser_shell.commands.cli import run
from browser_shell.commands.greeting import greeting
from browser_shell.core.calls import Principal
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.tokens import AuthFailure, TokenAuthenticator, read_public_key
from browser_shell.server.common import SystemClock, build_access
from browser_shell.settings import Settings, read_settings
from support.tokens import env_value, rsa_key


@pytest.fixture(autouse=True)
def logs_go_back_to_where_they_went() -> Iterator[None]:
    """`serve` sends its logs to the standard error of the moment, which here ends with the test."""
    handlers = list(logging.root.handlers)
    yield
    logging.root.handlers[:] = handlers
    structlog.reset_defaults()


def settings(**env: str) -> Settings:
    return read_settings({"HOME": "/nonexistent", **env})


COMMANDS = ("serve", "stdio", "policy", "audit", "evidence", "token", "health", "doctor")
ALL_IN_MEMORY = """
import sys
from contextlib import suppress
from browser_shell.commands.cli import run
with suppress(SystemExit):
    run(sys.argv[1:])
print(*(name for name in sys.modules if name.startswith("browser_shell.")))
"""


@pytest.mark.parametrize("argv", [["--help"], [], ["nonsense"], ["Serve"]])
def test_whoever_asks_for_no_command_is_told_of_all(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(argv)
    told = "".join(capsys.readouterr())
    assert not argv or all(command in told for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        run([command, "--help"])
    assert f"usage: browser-shell {command} " in capsys.readouterr().out


def test_a_server_has_no_other_command_in_its_memory() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ALL_IN_MEMORY, "serve", "--port", "nonsense"], capture_output=True, text=True, check=True
    )
    assert "argument --port: must be a whole number from 0 to 65535, not 'nonsense'" in ran.stderr
    loaded = set(ran.stdout.split())
    assert "browser_shell.commands.cli" in loaded
    others = {f"browser_shell.commands.{name}" for name in COMMANDS if name not in ("serve", "stdio")}
    assert not (others | {"browser_shell.audit.report"}) & loaded


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_key_and_a_token_for_people(algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "keygen", "--algorithm", algorithm, "--out", str(tmp_path / "keys")]) == 0
    lines = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    private = tmp_path / "keys" / "private.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert base64.b64decode(lines["JWT_PUBLIC_KEY"]) == (tmp_path / "keys" / "public.pem").read_bytes()
    assert lines.get("JWT_ALGORITHM", "RS256") == algorithm

    assert run(["token", "make", "--key", str(private), "--subject", "ann", "--ttl", "2h", "--audience", "box"]) == 0
    token = capsys.readouterr().out.strip()
    key = read_public_key(lines["JWT_PUBLIC_KEY"], algorithm)
    holder = TokenAuthenticator(key=key, clock=SystemClock(), audience="box").verify(token)
    assert isinstance(holder, Principal)
    assert holder.subject == "ann"
    assert holder.expires_at == pytest.approx(time.time() + 7200, abs=60)


def test_a_key_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "private.pem").write_text("precious")
    assert run(["token", "keygen", "--out", str(tmp_path)]) == 2
    assert (tmp_path / "private.pem").read_text() == "precious"
    assert "nothing is overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--subject", ""],
        ["--subject", "a\nb"],
        ["--subject", "a", "--ttl", "0h"],
        ["--subject", "a", "--ttl", "1"],
        ["--subject", "a", "--ttl=-1h"],
        ["--subject", "a", "--ttl", "400d"],
    ],
)
def test_a_token_that_no_server_would_accept_is_not_made(arguments: list[str], tmp_path: Path) -> None:
    assert run(["token", "keygen", "--out", str(tmp_path), "--algorithm", "EdDSA"]) == 0
    assert run(["token", "make", "--key", str(tmp_path / "private.pem"), *arguments]) == 2


def test_a_key_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "make", "--key", str(tmp_path / "none"), "--subject", "a"]) == 2
    assert "none" in capsys.readouterr().err


def test_health_of_no_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_SHELL_RUNTIME_DIR", str(tmp_path))
    for port in ("0", "9222"):
        monkeypatch.setenv("BROWSER_REMOTE_DEBUGGING_PORT", port)
        assert run(["health"]) == 1
    assert "no server answers" in capsys.readouterr().out


def test_health_asks_which_of_several_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_SHELL_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("BROWSER_REMOTE_DEBUGGING_PORT", "0")
    for port in ("1", "2"):
        (tmp_path / port).mkdir()
        (tmp_path / port / "health.sock").touch()
    assert run(["health"]) == 2


# Settings.


def test_the_defaults_are_closed() -> None:
    found = settings()
    assert found.host == "127.0.0.1"
    assert (found.access.public_hosts, found.access.allowed_origins, found.access.metrics_address) == ((), (), "")
    assert (found.access.jwt_public_key, found.access.jwt_algorithm) == ("", "RS256")
    assert (found.access.jwt_audience, found.access.jwt_issuer) == (None, None)
    assert (found.access.ticket_seconds, found.access.requests_per_second) == (30, 60)
    assert not found.access.unsafe_no_auth


def test_lists_are_written_with_commas() -> None:
    found = settings(PUBLIC_HOSTS=" a.example, b.example:1 ,", ALLOWED_ORIGINS="https://c.example")
    assert found.access.public_hosts == ("a.example", "b.example:1")
    assert found.access.allowed_origins == ("https://c.example",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TICKET_TTL_SECONDS", "0"),
        ("TICKET_TTL_SECONDS", "301"),
        ("TICKET_TTL_SECONDS", "x"),
        ("JWT_ALGORITHM", "HS256"),
        ("JWT_ALGORITHM", "none"),
        ("JWT_ALGORITHM", "rs256"),
        ("BROWSER_SHELL_REQUESTS_PER_SECOND", "0"),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=name):
        settings(**{name: value})


# Access.


@pytest.mark.promise("tokens:no-key-is-not-open")
@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_without_a_key_there_is_one_token_and_no_open_door(blank: str) -> None:
    access = build_access(settings(JWT_PUBLIC_KEY=blank))
    assert isinstance(access.authenticator.identify(None), AuthFailure)
    assert isinstance(access.authenticator.identify(f"Bearer {access.token}"), Principal)


def test_with_a_key_nothing_is_printed() -> None:
    access = build_access(settings(JWT_PUBLIC_KEY=f" {env_value(rsa_key())} "))
    assert access.token is None
    assert isinstance(access.authenticator.identify(None), AuthFailure)


@pytest.mark.parametrize("option", ["--port", "--unsafe-attach"])
@pytest.mark.parametrize("port", ["65536", "99999", "-1", "1e3", "٨٠", ""])
def test_a_port_that_none_can_have_is_refused(option: str, port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(["serve", f"{option}={port}", "--help"])
    assert f"{option}: must be a whole number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.promise("tokens:unsound-key-no-start")
def test_a_server_with_an_unsound_key_does_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JWT_PUBLIC_KEY", env_value(rsa_key(1024)))
    assert run(["serve", "--port", "0"]) == 2
    assert "JWT_PUBLIC_KEY" in capsys.readouterr().err


@pytest.mark.promise("tokens:open-on-loopback-only")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "localhost"])
def test_open_access_is_for_loopback_only(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--port", "0", "--unsafe-no-auth", "--host", host]) == 2
    assert "--unsafe-no-auth" in capsys.readouterr().err


# The greeting.


def test_the_greeting_has_a_client_configuration_that_works() -> None:
    text = greeting(settings(), token="a.b.c", port=8080)
    assert "http://127.0.0.1:8080/mcp" in text
    assert '"headers": {"Authorization": "Bearer a.b.c"}' in text
    assert "throw-away" in text


def test_the_greeting_of_a_server_with_a_key_has_a_place_for_a_token() -> None:
    text = greeting(settings(PUBLIC_HOST="0.0.0.0"), token=None, port=8080)
    assert "http://127.0.0.1:8080/mcp" in text
    assert '"Authorization": "Bearer <token>"' in text
    assert "throw-away" not in text


def test_the_browsers_server_does_not_load_what_only_jobs_need() -> None:
    code = "import sys, browser_shell.commands.cli; sys.exit('aiodocker' in sys.modules or 'aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("address", ["http://:s3cret@h/", "s3cret", "redis:s3cret"])
def test_an_address_of_redis_is_checked_and_never_shown(address: str) -> None:
    with pytest.raises(ConfigurationInvalid) as wrong:
        settings(BROWSER_SHELL_LIMITS_REDIS=address)
    assert "BROWSER_SHELL_LIMITS_REDIS" in str(wrong.value)
    assert "s3cret" not in str(wrong.value)
    assert "s3cret" not in repr(settings(BROWSER_SHELL_LIMITS_REDIS="rediss://:s3cret@h:1/0"))


def test_switches_of_the_browser_mean_nothing_to_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--profile", "write", "--unsafe-no-jail"]) == 2
    assert run(["serve", "--workspace", "."]) == 2
    said = capsys.readouterr().err
    assert "--unsafe-no-jail" in said
    assert "--workspace" in said


def test_a_server_without_a_redis_does_not_load_its_client() -> None:
    code = (
        "import sys, browser_shell.server.browser_server; sys.exit('redis' in sys.modules or 'limits' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
