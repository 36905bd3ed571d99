"""Applications and one server that all tasks share, and the report of what each task needed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.app_tasks import TASKS
from support.applications import NODE_MODULES, REPOSITORY, SOURCES, Applications, running_applications
from support.scripted_agent import ScriptedAgent
from support.server import Server, running_server

REPORT = REPOSITORY / "build/apps-report.json"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/apps/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def apps() -> Iterator[Applications]:
    with running_applications() as running:
        yield running


@pytest.fixture(scope="session")
def server(apps: Applications) -> Iterator[Server]:
    with running_server(apps.policy) as running:
        yield running


@pytest.fixture(scope="session")
def report() -> Iterator[list[dict[str, Any]]]:
    """Entries of build/apps-report.json, written at the end."""
    entries: list[dict[str, Any]] = []
    yield entries
    counts = _count_tokens([entry.pop("results") for entry in entries])
    for entry, count in zip(entries, counts, strict=True):
        entry["result_tokens"] = count
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(entries, indent=1) + "\n")


def _count_tokens(results: list[list[str]]) -> list[int]:
    """Return the number of cl100k tokens in each task's results."""
    argv = ["node", str(SOURCES / "count_tokens.mjs"), str(NODE_MODULES)]
    counted = subprocess.run(argv, input=json.dumps(results), capture_output=True, text=True, check=True, timeout=120)
    counts: list[int] = json.loads(counted.stdout)
    return counts


@pytest.fixture
def work(apps: Applications, server: Server, report: list[dict[str, Any]]) -> Iterator[Callable[[str, bool], None]]:
    """Works through a task in a session of its own."""
    agents: list[ScriptedAgent] = []

    def do(name: str, batched: bool) -> None:
        session = server.session(f"{name}-{'batched' if batched else 'single'}")
        agent = ScriptedAgent(session)
        agents.append(agent)
        task = TASKS[name](apps, f"run{int(batched)}")
        agent.work(task, batched=batched)
        report.append(
            {
                "task": name,
                "goal": task.goal,
                "batched": batched,
                "steps": len(task.steps),
                "calls": len(agent.results),
                "seconds": round(agent.seconds, 2),
                "results": agent.results,
            }
        )

    yield do
    for agent in agents:
        agent.session.run("close")
