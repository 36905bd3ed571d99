"""The environment: documented completely and read strictly."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.settings import IGNORED_NAMES, VARIABLES, Settings, read_settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


class EmptyEnvironment(Mapping[str, str]):
    """Records the names that are looked up."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def settings(**env: str) -> Settings:
    return read_settings({"HOME": "/nonexistent", **env})


def test_every_variable_that_is_read_is_in_the_table() -> None:
    env = EmptyEnvironment()
    read_settings(env)
    names = [variable.name for section in VARIABLES.values() for variable in section]
    assert len(names) == len(set(names))
    assert env.names - {"HOME", *IGNORED_NAMES} == set(names)


def test_every_variable_is_documented() -> None:
    env = EmptyEnvironment()
    read_settings(env)
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if re.match(r"\| `[A-Z_]+`", line)]
    documented = {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row.split("|")[1])}
    assert env.names - {"HOME"} == documented


def test_the_defaults_give_no_access_from_outside() -> None:
    defaults = settings()
    assert defaults.host == "127.0.0.1"
    assert (defaults.access.public_hosts, defaults.access.allowed_origins, defaults.access.metrics_address) == (
        (),
        (),
        "",
    )
    assert (defaults.access.jwt_public_key, defaults.access.jwt_algorithm) == ("", "RS256")
    assert (defaults.access.jwt_audience, defaults.access.jwt_issuer) == (None, None)
    assert (defaults.access.ticket_seconds, defaults.access.requests_per_second) == (30, 60)
    assert not defaults.access.unsafe_no_auth


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_number_is_the_default(blank: str) -> None:
    assert settings(PUBLIC_PORT=blank).port == 8080


def test_lists_are_separated_by_commas() -> None:
    access = settings(PUBLIC_HOSTS=" a.example, b.example:1 ,", ALLOWED_ORIGINS="https://c.example").access
    assert access.public_hosts == ("a.example", "b.example:1")
    assert access.allowed_origins == ("https://c.example",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUBLIC_PORT", "65536"),
        ("TICKET_TTL_SECONDS", "0"),
        ("TICKET_TTL_SECONDS", "301"),
        ("TICKET_TTL_SECONDS", "x"),
        ("JWT_ALGORITHM", "HS256"),
        ("JWT_ALGORITHM", "none"),
        ("JWT_ALGORITHM", "rs256"),
        ("BROWSER_SHELL_REQUESTS_PER_SECOND", "0"),
        ("BROWSER_SHELL_STATE_DIR", "relative"),
        ("BROWSER_SHELL_UNSAFE_MISSING_LOCKS", "everything"),
        ("BROWSER_SHELL_ENGINE", "tcp://127.0.0.1:2375"),
        ("DOCKER_HOST", "tcp://127.0.0.1:2375"),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_its_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=name):
        settings(**{name: value})


@pytest.mark.parametrize("address", ["http://:s3cret@h/", "s3cret", "redis:s3cret"])
def test_a_redis_address_is_checked_and_never_shown(address: str) -> None:
    with pytest.raises(ConfigurationInvalid) as error:
        settings(BROWSER_SHELL_LIMITS_REDIS=address)
    assert "BROWSER_SHELL_LIMITS_REDIS" in str(error.value)
    assert "s3cret" not in str(error.value)
    assert "s3cret" not in repr(settings(BROWSER_SHELL_LIMITS_REDIS="rediss://:s3cret@h:1/0"))


def test_variables_of_aio_without_meaning_here_are_listed_as_ignored() -> None:
    ignored = settings(DISABLE_JUPYTER="true", MCP_HUB_WAIT_PORTS="", PROXY_SERVER="http://u:p@proxy").ignored
    assert ignored == ("DISABLE_JUPYTER", "PROXY_SERVER")


def test_the_public_key_can_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "public.pem"
    file.write_text("-----BEGIN PUBLIC KEY-----\n")
    key = settings(JWT_PUBLIC_KEY_FILE=str(file)).access.jwt_public_key
    assert base64.b64decode(key) == b"-----BEGIN PUBLIC KEY-----\n"


@pytest.mark.parametrize("also", [{"JWT_PUBLIC_KEY": "eA=="}, {}])
def test_two_keys_or_a_missing_key_file_are_refused(tmp_path: Path, also: dict[str, str]) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"JWT_PUBLIC_KEY_FILE|key file"):
        settings(JWT_PUBLIC_KEY_FILE=str(tmp_path / "none"), **also)
