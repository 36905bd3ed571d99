"""Start and end of the server: clear refusals, and no processes or files left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.in_flight import opening_slowly
from support.pages import Site, wait_until
from support.processes import alive, argv, descendants, program, status
from support.server import running_server
from support.wire import ENVELOPE, body, call_params

STOPPED_SECONDS = 8


def policy_for(site: Site) -> dict[str, object]:
    return {"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def refused_start(server_env: Mapping[str, str]) -> str:
    """Return standard error of a server that must refuse to start, with exit code 2 and without a traceback."""
    env = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "PUBLIC_PORT": "0", **server_env}
    program_path = Path(sys.executable).with_name("browser-shell")
    ended = subprocess.run([program_path, "serve"], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2, ended
    assert "Traceback" not in ended.stdout + ended.stderr
    return ended.stderr


@pytest.fixture
def directories() -> Iterator[dict[str, str]]:
    """Directories with short paths, because they contain sockets."""
    base = Path(tempfile.mkdtemp(prefix="bsh-"))
    base.chmod(0o711)
    yield {
        "BROWSER_SHELL_RUNTIME_DIR": str(base / "r"),
        "BROWSER_SHELL_STATE_DIR": str(base / "state"),
        "BROWSER_REMOTE_DEBUGGING_PORT": "0",
    }
    shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_all_its_processes(site: Site, number: signal.Signals) -> None:
    with running_server(policy_for(site)) as server:
        for name in ("one", "two"):
            server.session(name).ok("open", site.watch("").url)
        opening_slowly(server.session("three"), site, 60)
        family = descendants(server.process.pid)
        names = {program(pid) for pid in family}
        assert {"chromium", "Xtigervnc"} <= names, names
        started_at = time.monotonic()
        assert server.stop(number) == 0
        print(f"{number.name}: ended after {time.monotonic() - started_at:.2f} s")
        assert time.monotonic() - started_at < STOPPED_SECONDS
        wait_until(lambda: not any(map(alive, family)), seconds=2, what="no process left")
        assert list(server.runtime.glob("*/s/*")) == []
        assert list(server.runtime.glob("*/identities/*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_stdio_server_whose_input_stays_open(
    site: Site, directories: dict[str, str], number: signal.Signals, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(policy_for(site)), encoding="utf-8")
    env = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **directories}
    command = [str(Path(sys.executable).with_name("browser-shell")), "stdio", "--policy", str(policy)]
    slow = f"/slow/{next(site.numbers)}/60"
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number_of_call, url in enumerate((site.watch("").url, site.origin + slow)):
            params = {**call_params("open", url, session_id=f"s{number_of_call}"), "_meta": ENVELOPE}
            process.stdin.write(json.dumps(body("tools/call", params, request_id=number_of_call)).encode() + b"\n")
            process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert (answer["id"], answer["result"]["structuredContent"]["exit_code"]) == (0, 0)
        wait_until(lambda: any(request.path == slow for request in site.requests), seconds=10, what="the slow request")
        family = descendants(process.pid)
        assert {"chromium", "Xtigervnc"} <= {program(pid) for pid in family}
        started_at = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == 0
        print(f"{number.name}: ended after {time.monotonic() - started_at:.2f} s")
        assert time.monotonic() - started_at < STOPPED_SECONDS
        wait_until(lambda: not any(map(alive, family)), seconds=2, what="no process left")


def test_the_next_server_cleans_up_after_a_killed_one(site: Site, directories: dict[str, str]) -> None:
    runtime = Path(directories["BROWSER_SHELL_RUNTIME_DIR"])
    port = {"BROWSER_REMOTE_DEBUGGING_PORT": str(free_port())}
    url = site.watch("<p id=p>text</p>").url
    with running_server(policy_for(site), env=port, runtime=runtime) as first:
        for name in ("one", "two"):
            first.session(name).ok("open", url)
        family = descendants(first.process.pid)
        daemons = set(first.daemons().values())
        assert len(daemons) == 2
        display = first.mark("xvnc")
        first.process.kill()
        first.process.wait(5)

        with running_server(policy_for(site), env=port, runtime=runtime) as second:
            assert not [argv(pid) for pid in family if alive(pid)]
            assert _locks_of(display) == []
            session = second.session("one")
            assert session.ok("get", "url") == {"url": "about:blank"}
            session.ok("open", url)
            assert session.ok("get", "text", "#p")["text"] == "text"
            assert set(second.daemons().values()).isdisjoint(daemons)


def test_a_second_server_on_the_same_devtools_port_is_refused_without_effect_on_the_first(
    site: Site, directories: dict[str, str]
) -> None:
    runtime = Path(directories["BROWSER_SHELL_RUNTIME_DIR"])
    with running_server(policy_for(site), runtime=runtime) as server:
        session = server.session("s")
        session.ok("open", site.watch("<p id=p>text</p>").url)
        port = str(server.devtools_port)
        errors = refused_start({**directories, "BROWSER_REMOTE_DEBUGGING_PORT": port})
        assert "BROWSER_REMOTE_DEBUGGING_PORT" in errors
        # Another runtime directory, so the port is in use but the lock is free.
        elsewhere = {"BROWSER_SHELL_RUNTIME_DIR": str(runtime.with_name("r2"))}
        errors = refused_start({**directories, **elsewhere, "BROWSER_REMOTE_DEBUGGING_PORT": port})
        assert "BROWSER_REMOTE_DEBUGGING_PORT" in errors
        assert session.ok("get", "text", "#p")["text"] == "text"


def test_a_devtools_port_in_use_by_another_program_is_refused(directories: dict[str, str]) -> None:
    with socket.socket() as foreign:
        foreign.bind(("127.0.0.1", 0))
        foreign.listen()
        port = str(foreign.getsockname()[1])
        errors = refused_start({**directories, "BROWSER_REMOTE_DEBUGGING_PORT": port})
    assert "BROWSER_REMOTE_DEBUGGING_PORT" in errors
    assert port in errors


def test_a_public_port_in_use_is_refused(directories: dict[str, str]) -> None:
    with socket.socket() as foreign:
        foreign.bind(("127.0.0.1", 0))
        foreign.listen()
        port = str(foreign.getsockname()[1])
        assert port in refused_start({**directories, "PUBLIC_PORT": port})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUBLIC_PORT", "abc"),
        ("PUBLIC_PORT", "65536"),
        ("BROWSER_REMOTE_DEBUGGING_PORT", "-1"),
        ("DISPLAY_WIDTH", "10"),
        ("BROWSER_SHELL_POLICY", "relative.json"),
        ("BROWSER_SHELL_RUNTIME_DIR", "relative"),
    ],
)
def test_an_invalid_setting_is_refused_by_name(directories: dict[str, str], name: str, value: str) -> None:
    assert name in refused_start({**directories, name: value})


def test_an_unknown_policy_key_is_refused_by_name(directories: dict[str, str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"open": {"allow_hostz": []}}), encoding="utf-8")
    errors = refused_start({**directories, "BROWSER_SHELL_POLICY": str(policy)})
    assert "open.allow_hostz" in errors


@pytest.mark.promise("processes:chromium-not-root")
@pytest.mark.parametrize("account", ["nope", "root"])
def test_a_server_started_as_root_without_an_account_does_not_start(directories: dict[str, str], account: str) -> None:
    if os.geteuid() == 0:
        assert "BROWSER_SHELL_USER" in refused_start({**directories, "BROWSER_SHELL_USER": account})
        return
    # Without root the setting has no effect: all processes run as the current account.
    with running_server({}, env={"BROWSER_SHELL_USER": account}) as server:
        assert status(server.mark("chromium"), "Uid").split()[0] == str(os.geteuid())


def _locks_of(pid: int) -> list[Path]:
    """Lock files of displays that belong to this process."""
    return [
        path
        for path in Path(tempfile.gettempdir()).glob(".X*-lock")
        if path.read_text(encoding="ascii").strip() == str(pid)
    ]
