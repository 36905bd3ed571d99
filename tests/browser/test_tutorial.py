"""Every command of docs/tutorial.md works as printed, with a local page in the place of example.com."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pages import Site
from support.server import Server, running_server

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
STARTS_A_SERVER = re.compile(r"make up|\S+browser-shell serve ")
PAGE = """<title>Example Domain</title><h1>Example Domain</h1>
<a href="https://iana.org/domains/example">Learn more</a>"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if not line.startswith("export ")]


@pytest.fixture
def box(site: Site) -> Iterator[Server]:
    """A server with the policy of the tutorial, for which example.com is a page of the test's own."""
    site.add("/", PAGE)
    (policy,) = map(json.loads, blocks("json"))
    policy["open"]["unsafe_resolve"] = {"example.com": f"127.0.0.1:{site.port}"}
    with running_server(policy) as running:
        yield running


def test_commands_of_the_tutorial_work_as_printed(box: Server, tmp_path: Path) -> None:
    (client,), (policy,) = blocks("python"), blocks("json")
    (tmp_path / "call.py").write_text(client.replace(":8080", f":{box.port}"), encoding="utf-8")
    (tmp_path / "policy.json").write_text(policy, encoding="utf-8")
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    env = {
        **os.environ,
        "TOKEN": box.token,
        "BROWSER_SHELL_STATE_DIR": str(box.state),
        "BROWSER_REMOTE_DEBUGGING_PORT": str(box.devtools_port),
    }
    output = {}
    for command in commands():
        if STARTS_A_SERVER.match(command):
            box.session("demo").run("close")
            continue
        # The local page has no certificate; `open example.com` means https.
        line = command.replace("open example.com", "open http://example.com/")
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        output[command.removeprefix(".venv/bin/python call.py demo ")] = done.stdout

    assert "Example Domain" in output["open example.com"]
    assert 'link \\"Learn more\\" [ref=e2]' in output["snapshot -i"]
    assert output["open www.iana.org"].startswith("exit code 126\nPOLICY_BLOCKED: www.iana.org")
    assert "rule address.metadata" in output["open http://169.254.169.254/"]
    assert output["click @e2"].startswith("exit code 126\nPOLICY_BLOCKED: blocked by egress policy: iana.org")
    assert "about:blank#blocked" in output["get url"]
    assert output["close"] == 'exit code 0\n{"closed":true}\n\n'
    (verdict,) = (text for command, text in output.items() if "policy check" in command)
    assert json.loads(verdict)["rule"] == "host.allowlist"
    assert "MCP_NETWORK_BLOCKED" in output[".venv/bin/browser-shell audit tail -n 30"]
    assert output[".venv/bin/browser-shell audit verify"].startswith("ok ")
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_quoted_output_is_what_the_server_prints(box: Server) -> None:
    session = box.session()
    for argv in (["open", "www.iana.org"], ["open", "http://169.254.169.254/"]):
        assert session.run(*argv).stderr.strip() in TUTORIAL
