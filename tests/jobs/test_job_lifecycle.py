"""Jobs that are cancelled, or that lose their client or their server."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from support.job_server import JobServer, call_message, job_server, until, verify
from support.server import start_process, wait_ready

ENDLESS = {"project": "pytest_sample", "tests": ["tests/test_sums.py::test_for_ever"]}


@pytest.fixture(scope="module")
def jobs() -> Iterator[JobServer]:
    with job_server("docker", options=["--unsafe-no-auth"]) as running:
        yield running


def newest_run(jobs: JobServer) -> str:
    return max((path for path in jobs.artifacts.iterdir()), key=lambda path: path.stat().st_mtime).name


def start_in_background(jobs: JobServer) -> threading.Thread:
    def call() -> None:
        try:
            jobs.call("run_pytest", **ENDLESS)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return  # The server was killed.

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    until(lambda: jobs.containers())
    return thread


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_with_a_progress_token_receives_progress(jobs: JobServer, mode: str) -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with Client(f"http://127.0.0.1:{jobs.server.port}/mcp", mode=mode) as client:
        result = await client.call_tool(
            "run_pytest", {"project": "pytest_sample", "keyword": "even"}, progress_callback=on_progress
        )
    assert result.structured_content["passed"] is True
    assert reports
    assert all(total == 120.0 and message for _, total, message in reports)
    assert [done for done, _, _ in reports] == sorted(done for done, _, _ in reports)


@pytest.mark.promise("jobs:cancelling-kills")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_cancelling_a_call_kills_its_container(jobs: JobServer, mode: str) -> None:
    async with (
        Client(f"http://127.0.0.1:{jobs.server.port}/mcp", mode=mode) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call_tool, "run_pytest", ENDLESS)
        await anyio.to_thread.run_sync(lambda: until(lambda: jobs.containers()))
        tasks.cancel_scope.cancel()
    run_id = newest_run(jobs)
    until(lambda: not jobs.containers())
    until(lambda: (jobs.artifacts / run_id / "evidence.json").exists())
    assert jobs.evidence(run_id)["outcome"]["end"] == "cancelled"
    until(lambda: "TOOL_FINISHED" in jobs.kinds(run_id))
    assert "MCP_CONTAINER_CLEANUP" in jobs.kinds(run_id)


@pytest.mark.promise("jobs:cancelling-kills")
def test_a_client_disconnect_removes_its_container(jobs: JobServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", jobs.server.port, timeout=30)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", json.dumps(call_message("run_pytest", **ENDLESS)), headers)
    until(lambda: jobs.containers())
    connection.close()
    until(lambda: not jobs.containers())


def test_stopping_the_server_ends_its_jobs() -> None:
    with job_server("docker") as running:
        thread = start_in_background(running)
        run_id = newest_run(running)
        assert running.server.stop(signal.SIGTERM, seconds=30) == 0
        thread.join(10)
        assert running.containers() == []
        assert running.evidence(run_id)["complete"] is False
        assert verify(running.jobs).returncode == 0


@pytest.mark.promise("jobs:a-killed-server-leaves-evidence")
@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_the_next_server_closes_the_runs_of_a_killed_one(engine: str) -> None:
    with job_server(engine) as running:
        server = running.server
        thread = start_in_background(running)
        run_id = newest_run(running)
        until(lambda: "MCP_CONTAINER_EXEC" in running.kinds(run_id))
        os.kill(server.process.pid, signal.SIGKILL)
        server.stop()
        thread.join(10)
        assert running.containers(), "no server is running that could remove it"

        server.process = start_process(server.argv, server.env)
        server.lines.clear()
        wait_ready(server)
        assert running.containers() == []
        document = running.evidence(run_id)
        assert (document["complete"], document["outcome"]["end"]) == (False, "server_lost")
        swept = [r for r in running.records() if r["kind"] == "MCP_CONTAINER_CLEANUP" and r["run_id"] == run_id]
        assert [record["error"] for record in swept] == ["SERVER_LOST"]
        checked = verify(running.jobs)
        assert checked.returncode == 0, checked.stdout
        assert "incomplete" in checked.stdout
        assert running.run("run_pytest", project="pytest_sample", keyword="even")["passed"]


async def test_the_write_profile_works_over_stdio(jobs: JobServer, tmp_path: Any) -> None:
    env = {
        **jobs.server.env,
        "BROWSER_SHELL_STATE_DIR": f"{jobs.server.state}2",
        "BROWSER_SHELL_RUNTIME_DIR": f"{jobs.server.runtime}2",
    }
    program = StdioServerParameters(command=jobs.server.argv[0], args=["stdio", "--profile", "write"], env=env)
    async with Client(stdio_client(program), mode="auto") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["run_playwright", "run_pytest"]
        result = await client.call_tool("run_pytest", {"project": "pytest_sample", "keyword": "even"})
    assert result.structured_content["passed"] is True


def test_limits_apply_to_jobs_and_an_exhausted_budget_kills_the_job() -> None:
    tools = {"run_pytest": {"budget": {"elapsed_seconds": 5}}, "run_playwright": {"calls_per_minute": 1}}
    with job_server("docker", policy={"limits": {"tools": tools}}) as running:
        error = running.call("run_pytest", **ENDLESS)["error"]
        assert (error["code"], error["data"]["rule"]) == (-32005, "limits.budget.elapsed")
        assert error["data"]["retry_after"] > 0
        assert running.containers() == []
        run_id = error["data"]["run_id"]
        assert running.evidence(run_id)["outcome"]["end"] == "cancelled"
        assert running.call("run_pytest", project="pytest_sample")["error"]["code"] == -32005
        assert running.call("run_playwright", language="cobol")["error"]["code"] == -32602
        limited = running.call("run_playwright", language="node")["error"]
        assert (limited["code"], limited["data"]["code"], limited["data"]["rule"]) == (
            1011,
            "RATE_LIMITED",
            "limits.rate",
        )
        assert verify(running.jobs).returncode == 0
