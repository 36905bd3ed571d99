"""The overlay on the stand-in image: every check of verify.sh passes, and fails when its guard is removed."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.aio import ROOT, Aio, BackgroundReport

OVERLAY = ROOT / "deploy" / "aio" / "overlay"
# Checks that pass without the overlay, because AIO enforces them itself. All others must fail.
HOLDS_WITHOUT_OVERLAY = {
    *("token.good", "token.none", "token.garbage", "token.other-key", "token.expired", "token.algorithm-none"),
    *("token.key-as-secret", "token.mcp", "token.page", "token.socket"),
    *("ticket.made", "ticket.page", "ticket.socket", "ticket.before-token", "ticket.last-one-counts", "ticket.ends"),
    *("process.gost", "program.gost", "supervisor.running", "chromium.found"),
    *("mcp.needs-event-stream", "browser.page-reaches-no-address", "closed /mcp%00"),
}


def test_the_overlay_passes_every_check(
    whole_report: BackgroundReport, report_without_overlay: BackgroundReport
) -> None:
    report = whole_report.wait()
    assert (report.exit_code, report.failed) == (0, frozenset()), report.text
    assert report.passed == report_without_overlay.wait().passed | report_without_overlay.wait().failed


def test_the_checks_fail_where_the_overlay_is_missing(report_without_overlay: BackgroundReport) -> None:
    report = report_without_overlay.wait()
    assert report.exit_code == 1, report.text
    assert report.passed == HOLDS_WITHOUT_OVERLAY, report.text


@dataclass(frozen=True, slots=True)
class Breakage:
    """A guard that is removed, and the check that must fail."""

    check: str
    file: str
    """Path relative to deploy/aio."""
    container_path: str
    text: str
    replacement: str = ""


_NGINX = ("overlay/nginx.conf", "/opt/browser-shell/aio/nginx.conf")
_START = ("overlay/start.py", "/opt/browser-shell/aio/start.py")
_HUB = ("overlay/mcp-hub.json.template", "/opt/browser-shell/aio/mcp-hub.json.template")
_LOOPBACK = ("overlay/loopback-only.cjs", "/opt/browser-shell/aio/loopback-only.cjs")
_SESSION = ("../../src/browser_shell/browser/session.py", "@PACKAGES@/browser_shell/browser/session.py")
# Breakages of one row are independent and share a container. The key names the groups of checks to run.
BREAKAGES = {
    "paths tickets": (
        Breakage("closed /%6dcp", *_NGINX, 'if ($area = "") { return 403; }'),
        Breakage("ticket.calls-no-tool", *_NGINX, "X-Original-URI /;", "X-Original-URI $request_uri;"),
    ),
    "tokens": (
        Breakage("token.mcp", *_NGINX, "@ASK_FOR_TOKEN@"),
        Breakage("token.page", *_NGINX, "@ASK_FOR_TICKET@"),
    ),
    "tool chromium network server": (
        Breakage("network.only-the-public-port", *_LOOPBACK, 'host: "127.0.0.1"', 'host: "0.0.0.0"'),
        Breakage("network.only-the-public-port", *_LOOPBACK, '0, "127.0.0.1"', '0, "0.0.0.0"'),
        Breakage("chromium.web-security", *_START, '"--disable-web-security",'),
        Breakage(
            "browser.page-reaches-no-address",
            *_SESSION,
            '"proxyBypassList": NO_BYPASS',
            '"proxyBypassList": "127.0.0.1"',
        ),
        Breakage("server.environment", *_HUB, '"-i",'),
    ),
}


@pytest.fixture(scope="session")
def packages(aio: Aio) -> str:
    """Directory of Python packages in the image."""
    find = "import browser_shell, pathlib; print(pathlib.Path(browser_shell.__file__).parents[1])"
    python = "/opt/browser-shell/bin/python"
    return aio.do("run", "--rm", "--network", "none", "--entrypoint", python, aio.overlay, "-I", "-c", find)


@pytest.mark.parametrize("groups", BREAKAGES)
def test_a_removed_guard_fails_its_check(aio: Aio, packages: str, groups: str, tmp_path: Path) -> None:
    broken: dict[str, str] = {}
    for breakage in BREAKAGES[groups]:
        original = (ROOT / "deploy" / "aio" / breakage.file).read_text(encoding="utf-8")
        text = broken.get(breakage.container_path, original)
        assert breakage.text in text
        broken[breakage.container_path] = text.replace(breakage.text, breakage.replacement)
    mounts: list[str] = []
    for number, (inside, text) in enumerate(broken.items()):
        file = tmp_path / str(number)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o644)
        mounts += ["--volume", f"{file}:{inside.replace('@PACKAGES@', packages)}:ro"]
    report = aio.verify(aio.overlay, *mounts, only=groups)
    assert report.exit_code == 1, report.text
    assert {breakage.check for breakage in BREAKAGES[groups]} <= report.failed, report.text


def test_the_build_refuses_an_image_with_another_layout(aio: Aio) -> None:
    words = ("--volume", f"{OVERLAY}:/overlay:ro", "--entrypoint", "/bin/sh", aio.stand_in)
    other = "rm /opt/gem/mcp-hub-wait.sh && exec sh /overlay/take-away.sh"
    ended = aio.finish("run", "--rm", "--network", "none", *words, "-c", other)
    assert ended.returncode == 1
    assert "/opt/gem/mcp-hub-wait.sh is missing" in ended.stderr


def test_the_image_contains_no_certificates_of_the_build_machine(aio: Aio) -> None:
    def certificates(image: str) -> str:
        words = ("--entrypoint", "/usr/bin/sha256sum", image, "/etc/ssl/certs/ca-certificates.crt")
        return aio.do("run", "--rm", "--network", "none", *words)

    assert certificates(aio.overlay) == certificates(aio.stand_in)


@pytest.fixture(scope="module")
def open_box(aio: Aio) -> Iterator[tuple[str, str]]:
    """A running overlay without authentication on loopback: container name and MCP address."""
    name = f"aio-open-{os.getpid()}"
    publish = ("--publish", "127.0.0.1::8080", "--env", "BROWSER_SHELL_UNSAFE_NO_AUTH=1")
    try:
        aio.do("run", "--detach", "--name", name, *publish, aio.overlay)
        port = re.search(r":(\d+)$", aio.do("port", name, "8080").splitlines()[0])
        assert port is not None
        yield name, f"http://127.0.0.1:{port[1]}/mcp"
    finally:
        aio.finish("rm", "--force", "--volumes", name)


def _opens_a_page(url: str) -> bool:
    params = {"name": "browser-shell", "arguments": {"session_id": "s", "argv": ["open", "about:blank"]}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310  loopback
    try:
        with urllib.request.urlopen(request, timeout=40) as answer:  # noqa: S310
            return json.load(answer).get("result", {}).get("isError") is False
    except (OSError, urllib.error.URLError):
        return False


def _wait_until_it_works(url: str) -> None:
    deadline = time.monotonic() + 60
    while not _opens_a_page(url):
        assert time.monotonic() < deadline, "the tool does not work after 60 s"
        time.sleep(0.3)


def test_killed_programs_are_restarted(aio: Aio, open_box: tuple[str, str]) -> None:
    name, url = open_box
    _wait_until_it_works(url)
    for program in ("browser", "mcp-hub", "gem-server", "tigervnc"):
        control = ("supervisorctl", "-c", "/opt/gem/supervisord.conf")
        pid = aio.do("exec", name, *control, "pid", program)
        aio.do("exec", name, "kill", "-KILL", pid)
        _wait_until_it_works(url)
        deadline = time.monotonic() + 30
        while "RUNNING" not in aio.finish("exec", name, *control, "status", program).stdout:
            assert time.monotonic() < deadline, f"{program} was not restarted"
            time.sleep(0.3)
        assert aio.do("exec", name, *control, "pid", program) != pid


def test_access_without_tokens_is_reported_as_unsafe(aio: Aio, open_box: tuple[str, str]) -> None:
    name, url = open_box
    _wait_until_it_works(url)
    assert "UNSAFE: BROWSER_SHELL_UNSAFE_NO_AUTH" in aio.finish("logs", name).stderr


def test_the_health_check_follows_the_state_of_the_hub(aio: Aio, open_box: tuple[str, str]) -> None:
    name, url = open_box
    _wait_until_it_works(url)
    check = ("/opt/browser-shell/bin/python", "-I", "/opt/browser-shell/aio/health.py")
    aio.do("exec", name, *check)
    control = ("supervisorctl", "-c", "/opt/gem/supervisord.conf")
    aio.do("exec", name, *control, "stop", "mcp-hub")
    assert aio.finish("exec", name, *check).returncode == 1
    aio.do("exec", name, *control, "start", "mcp-hub")
