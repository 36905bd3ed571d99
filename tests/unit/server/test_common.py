"""Access, audit directory and signals of both profiles. tests/browser/test_server_life.py runs whole servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser_shell.core.calls import Principal
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.tokens import AuthFailure
from browser_shell.server.common import build_access, open_audit
from browser_shell.settings import Settings, read_settings
from support.tokens import env_value, rsa_key


def settings(**env: str) -> Settings:
    return read_settings({"HOME": "/nonexistent", **env})


@pytest.mark.promise("tokens:no-key-is-not-open")
@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_without_a_key_only_the_throw_away_token_is_accepted(blank: str) -> None:
    access = build_access(settings(JWT_PUBLIC_KEY=blank))
    assert isinstance(access.authenticator.identify(None), AuthFailure)
    assert isinstance(access.authenticator.identify(f"Bearer {access.token}"), Principal)


def test_with_a_key_there_is_no_throw_away_token() -> None:
    access = build_access(settings(JWT_PUBLIC_KEY=f" {env_value(rsa_key())} "))
    assert access.token is None
    assert isinstance(access.authenticator.identify(None), AuthFailure)


def test_a_state_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationInvalid, match="BROWSER_SHELL_STATE_DIR"):
        open_audit(settings(BROWSER_SHELL_STATE_DIR=str(tmp_path / "file")), "9222")
