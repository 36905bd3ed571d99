"""Requests and scenarios of the attack corpus, over real sockets to a running gateway."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from browser_shell.http.gateway import GatewaySettings
from browser_shell.http.routes import parse_trusted_hosts
from browser_shell.http.tokens import TokenAuthenticator, read_public_key
from browser_shell.server.common import SystemClock
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.corpus_rows import load
from support.fakes import a_pipeline
from support.http_corpus import CONSOLE, Attacker, RememberingSandbox
from support.live_view import stub_viewer
from support.loopback_server import serving
from support.pages import running_site
from support.server import running_server
from support.tokens import Keys, env_value, rsa_env_value

ROWS = load("http_attacks.jsonl")
ACCEPTED_EXCEPTIONS: dict[str, str] = {}
"""Rows of level `should` with another result here, each with its reason."""
START_SECONDS = 10
REQUIREMENTS = {
    "JWT_AUDIENCE": {"audience": "browser-box"},
    "JWT_ISSUER": {"issuer": "https://issuer.example.com"},
}


EXAMPLE = "https://example.com/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The server under attack."""

    port: int
    example: str = EXAMPLE
    """A page that it can open. The page of the corpus is not reachable from a test."""


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys()


@contextmanager
def running(keys: Keys, **claims: str) -> Iterator[Target]:
    """Run a gateway with the settings that the corpus assumes."""
    authenticator = TokenAuthenticator(
        key=read_public_key(env_value(keys.good), "RS256"),
        audience=claims.get("audience"),
        issuer=claims.get("issuer"),
        clock=SystemClock(),
    )
    pipeline = a_pipeline(registry=ToolRegistry([BrowserShellTool()]), sandbox=RememberingSandbox())
    with start_blocking_portal() as portal:
        front = serving(
            pipeline,
            authenticator=authenticator,
            settings=GatewaySettings(trusted_hosts=parse_trusted_hosts(listen="127.0.0.1", origins=[CONSOLE])),
            viewer=stub_viewer,
            clock=SystemClock(),
        )
        with portal.wrap_async_context_manager(front) as address:
            yield Target(port=int(address.rpartition(":")[2]))


@contextmanager
def running_box(keys: Keys, **claims: str) -> Iterator[Target]:
    """Run the whole server with the same settings, Chromium and viewer included."""
    env = {"JWT_PUBLIC_KEY": env_value(keys.good), "ALLOWED_ORIGINS": CONSOLE}
    env["BROWSER_SHELL_REQUESTS_PER_SECOND"] = "30"
    env |= {f"JWT_{name.upper()}": value for name, value in claims.items()}
    with running_site() as site:
        page = site.add("/", "<title>Example</title>")
        policy = {"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}}
        with running_server(policy, env=env) as server:
            yield Target(port=server.port, example=page)


@pytest.fixture(scope="module", params=[running, running_box], ids=["gateway", "box"])
def targets(keys: Keys, request: pytest.FixtureRequest) -> Iterator[dict[str, Target]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(request.param(keys, **claims))
            for name, claims in {"": {}, **REQUIREMENTS}.items()
        }


@pytest.fixture
def target(request: pytest.FixtureRequest, targets: dict[str, Target]) -> Target:
    row: dict[str, Any] = request.getfixturevalue("row")
    return targets[row.get("requires", [""])[0]]


@pytest.fixture
def attacker(keys: Keys, target: Target) -> Attacker:
    return Attacker(port=target.port, keys=keys)


def test_corpus_is_complete() -> None:
    assert len(ROWS) > 100
    assert all(row.get("level") != "must" for row in ROWS if row["id"] in ACCEPTED_EXCEPTIONS)


@pytest.mark.promise("http:corpus")
@pytest.mark.parametrize("row", [row for row in ROWS if "request" in row], ids=lambda row: str(row["id"]))
def test_corpus_request_gets_the_expected_status(row: dict[str, Any], attacker: Attacker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as canary:
        attacker.canary = canary.getsockname()[1]
        started_at = time.monotonic()
        answers = attacker.answers(row)
        canary.settimeout(0.05 if row.get("canary") else 0)
        with pytest.raises((TimeoutError, BlockingIOError)):
            canary.accept()
    expected = row["expect"]
    status = answers[0].status if answers else 0
    assert (status in expected["status"]) is (row["id"] not in ACCEPTED_EXCEPTIONS), (row["why"], answers)
    assert time.monotonic() - started_at < expected.get("within_sec", 15)
    assert len(answers) <= expected.get("max_responses", 1)
    for answer in answers:
        check_answer(expected, answer.headers, answer.body)


def check_answer(expected: dict[str, Any], headers: dict[str, str], body: bytes) -> None:
    for name, value in expected.get("must_headers", {}).items():
        assert value in headers[name.lower()]
    for banned in expected.get("not_headers", []):
        name, _, value = banned.partition(": ")
        assert name.lower() not in headers or (value and headers[name.lower()] != value)
    assert not any(banned.encode() in body for banned in expected.get("not_body", []))
    assert "server" not in headers
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.promise("http:corpus")
@pytest.mark.parametrize("row", [row for row in ROWS if "steps" in row], ids=lambda row: str(row["id"]))
def test_corpus_scenario_passes(row: dict[str, Any], target: Target, attacker: Attacker) -> None:
    attacker.play(json.loads(json.dumps(row["steps"]).replace(EXAMPLE, target.example)))


@pytest.mark.promise("tokens:unsound-key-no-start")
@pytest.mark.parametrize("row", [row for row in ROWS if "startup_env" in row], ids=lambda row: str(row["id"]))
def test_server_does_not_start_with_a_weak_key(row: dict[str, Any], keys: Keys, tmp_path: Path) -> None:
    generated = {
        "<RSA-2048 e=1>": lambda: rsa_env_value(keys.good.public_key().public_numbers().n, 1),
    }
    env = {name: generated[value]() if value in generated else value for name, value in row["startup_env"].items()}
    assert not any(re.match("<.*>", value) for value in env.values()), "unknown placeholder"
    completed = subprocess.run(
        [Path(sys.executable).with_name("browser-shell"), "serve"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PUBLIC_PORT": "0", **env},
        capture_output=True,
        timeout=START_SECONDS,
    )
    assert completed.returncode not in (0, -9)
    assert b"JWT_PUBLIC_KEY" in completed.stderr
    assert env["JWT_PUBLIC_KEY"].encode() not in completed.stderr + completed.stdout
    assert b"Traceback" not in completed.stderr
