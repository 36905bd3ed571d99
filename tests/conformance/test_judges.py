"""What a conversation pays for the tool before it is used once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from mcp.client.client import Client

from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.fakes import a_pipeline
from support.loopback_server import serving

ROOT = Path(__file__).parents[2]
COUNTER = Path(__file__).with_name("count_tokens.mjs")


@pytest.fixture(scope="module")
def judges() -> Path:
    """js-tiktoken and the suites, installed on first use."""
    subprocess.run([ROOT / "scripts" / "conformance", "--install"], check=True, timeout=600)
    return ROOT / ".tools" / "conformance"


def cl100k_tokens(text: str, judges: Path) -> int:
    counted = subprocess.run(
        ["node", COUNTER, judges], input=text.encode(), capture_output=True, check=True, timeout=60
    )
    return int(counted.stdout)


def test_the_counter_counts(judges: Path) -> None:
    assert cl100k_tokens("hello world", judges) == 2


async def test_the_list_of_tools_costs_at_most_350_tokens(judges: Path) -> None:
    pipeline = a_pipeline(registry=ToolRegistry([BrowserShellTool()]))
    async with serving(pipeline) as address, Client(f"{address}/mcp") as client:
        listed = await client.list_tools()
    wire = json.dumps(listed.model_dump(mode="json", by_alias=True, exclude_none=True), separators=(",", ":"))
    assert cl100k_tokens(wire, judges) <= 350


def test_the_conformance_suites_and_the_inspector_find_nothing_unexpected() -> None:
    judged = subprocess.run([ROOT / "scripts" / "conformance"], capture_output=True, timeout=600)
    assert judged.returncode == 0, judged.stdout.decode()[-4000:] + judged.stderr.decode()[-2000:]
