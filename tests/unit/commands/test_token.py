"""`browser-shell token`."""

from __future__ import annotations

import base64
import stat
import time
from pathlib import Path

import pytest

from browser_shell.commands.cli import run
from browser_shell.core.calls import Principal
from browser_shell.http.tokens import TokenAuthenticator, read_public_key
from browser_shell.server.common import SystemClock


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_new_key_verifies_the_token_it_signed(
    algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "keygen", "--algorithm", algorithm, "--out", str(tmp_path / "keys")]) == 0
    lines = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    private = tmp_path / "keys" / "private.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert base64.b64decode(lines["JWT_PUBLIC_KEY"]) == (tmp_path / "keys" / "public.pem").read_bytes()
    assert lines.get("JWT_ALGORITHM", "RS256") == algorithm

    assert run(["token", "make", "--key", str(private), "--subject", "ann", "--ttl", "2h", "--audience", "box"]) == 0
    token = capsys.readouterr().out.strip()
    key = read_public_key(lines["JWT_PUBLIC_KEY"], algorithm)
    principal = TokenAuthenticator(key=key, clock=SystemClock(), audience="box").verify(token)
    assert isinstance(principal, Principal)
    assert principal.subject == "ann"
    assert principal.expires_at == pytest.approx(time.time() + 7200, abs=60)


def test_keygen_does_not_overwrite_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
def test_a_token_that_every_server_would_refuse_is_not_made(arguments: list[str], tmp_path: Path) -> None:
    assert run(["token", "keygen", "--out", str(tmp_path), "--algorithm", "EdDSA"]) == 0
    assert run(["token", "make", "--key", str(tmp_path / "private.pem"), *arguments]) == 2


def test_a_missing_key_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "make", "--key", str(tmp_path / "none"), "--subject", "a"]) == 2
    assert "none" in capsys.readouterr().err
