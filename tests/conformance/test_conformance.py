"""Conformance suites, the inspector, and the token cost of the tool list."""

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
def tools() -> Path:
    """Install js-tiktoken and the suites on first use; return their directory."""
    subprocess.run([ROOT / "scripts" / "conformance", "--install"], check=True, timeout=600)
    return ROOT / ".tools" / "conformance"


def cl100k_tokens(text: str, tools: Path) -> int:
    counted = subprocess.run(["node", COUNTER, tools], input=text.encode(), capture_output=True, check=True, timeout=60)
    return int(counted.stdout)


def test_token_counter_counts(tools: Path) -> None:
    assert cl100k_tokens("hello world", tools) == 2


async def test_tools_list_costs_at_most_350_tokens(tools: Path) -> None:
    pipeline = a_pipeline(registry=ToolRegistry([BrowserShellTool()]))
    async with serving(pipeline) as address, Client(f"{address}/mcp") as client:
        tool_list = await client.list_tools()
    text = json.dumps(tool_list.model_dump(mode="json", by_alias=True, exclude_none=True), separators=(",", ":"))
    assert cl100k_tokens(text, tools) <= 350


def test_the_skill_costs_at_most_1200_tokens(tools: Path) -> None:
    skill = ROOT / "skills" / "browser-shell" / "SKILL.md"
    assert cl100k_tokens(skill.read_text(encoding="utf-8"), tools) <= 1200


def test_conformance_suites_and_inspector_pass() -> None:
    completed = subprocess.run([ROOT / "scripts" / "conformance"], capture_output=True, timeout=600)
    assert completed.returncode == 0, completed.stdout.decode()[-4000:] + completed.stderr.decode()[-2000:]
