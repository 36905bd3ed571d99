"""The environment: documented completely, read strictly, and foreign names ignored by name."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.commands.greeting import greeting
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.settings import IGNORED_NAMES, read_settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
OF_THE_SYSTEM = {"HOME"}


class Recording(Mapping[str, str]):
    """An empty environment that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def documented() -> set[str]:
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if re.match(r"\| `[A-Z_]+`", line)]
    return {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row.split("|")[1])}


def test_the_documented_table_is_what_the_server_reads() -> None:
    env = Recording()
    read_settings(env)
    assert env.asked - OF_THE_SYSTEM == documented()


def test_names_of_aio_that_mean_nothing_here_are_accepted_and_told() -> None:
    settings = read_settings({"DISABLE_JUPYTER": "true", "MCP_HUB_WAIT_PORTS": "", "PROXY_SERVER": "http://u:p@proxy"})
    assert settings.ignored == ("DISABLE_JUPYTER", "PROXY_SERVER")
    assert set(settings.ignored) <= set(IGNORED_NAMES)


def test_a_key_can_lie_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "public.pem"
    file.write_text("-----BEGIN PUBLIC KEY-----\n")
    settings = read_settings({"JWT_PUBLIC_KEY_FILE": str(file)})
    assert base64.b64decode(settings.access.jwt_public_key) == b"-----BEGIN PUBLIC KEY-----\n"


@pytest.mark.parametrize("other", [{"JWT_PUBLIC_KEY": "eA=="}, {}])
def test_two_keys_and_a_missing_file_stop_the_start(tmp_path: Path, other: dict[str, str]) -> None:
    with pytest.raises(ConfigurationInvalid):
        read_settings({"JWT_PUBLIC_KEY_FILE": str(tmp_path / "none"), **other})


@pytest.mark.parametrize(
    ("hosts", "address"),
    [("", "http://127.0.0.1:8080"), ("box.lan", "http://box.lan:8080"), ("box.lan:8443,other", "http://box.lan:8443")],
)
def test_the_greeting_names_the_address_that_people_use(hosts: str, address: str) -> None:
    settings = read_settings({"PUBLIC_HOSTS": hosts, "PUBLIC_HOST": "0.0.0.0"})
    assert f"{address}/mcp" in greeting(replace(settings, policy_source="here"), token="t", port=8080)
