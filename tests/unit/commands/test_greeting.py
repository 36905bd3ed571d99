"""The text that a server prints when it is ready."""

from __future__ import annotations

from dataclasses import replace

import pytest

from browser_shell.commands.greeting import greeting
from browser_shell.settings import Settings, read_settings


def settings(**env: str) -> Settings:
    return replace(read_settings({"HOME": "/nonexistent", **env}), policy_source="here")


def test_the_client_configuration_contains_the_throw_away_token() -> None:
    text = greeting(settings(), token="a.b.c", port=8080)
    assert "http://127.0.0.1:8080/mcp" in text
    assert '"headers": {"Authorization": "Bearer a.b.c"}' in text
    assert "throw-away" in text


def test_a_server_with_a_configured_key_shows_a_placeholder_token() -> None:
    text = greeting(settings(PUBLIC_HOST="0.0.0.0"), token=None, port=8080)
    assert "http://127.0.0.1:8080/mcp" in text
    assert '"Authorization": "Bearer <token>"' in text
    assert "throw-away" not in text


@pytest.mark.parametrize(
    ("hosts", "address"),
    [("", "http://127.0.0.1:8080"), ("box.lan", "http://box.lan:8080"), ("box.lan:8443,other", "http://box.lan:8443")],
)
def test_the_address_is_the_first_public_host(hosts: str, address: str) -> None:
    text = greeting(settings(PUBLIC_HOSTS=hosts, PUBLIC_HOST="0.0.0.0"), token="t", port=8080)
    assert f"{address}/mcp" in text
