"""Test jobs through /mcp in real containers: the answer, the files and the evidence."""

from __future__ import annotations

import http.client
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.job_server import JobServer, ask_engine, job_server, verify


@pytest.fixture(params=["docker", "podman"])
def jobs(request: pytest.FixtureRequest) -> JobServer:
    running: JobServer = request.getfixturevalue(request.param)
    return running


def status_of(jobs: JobServer, method: str, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", jobs.server.port, timeout=10)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()


def paths(answer: dict[str, Any]) -> list[str]:
    return [artifact["path"] for artifact in answer["artifacts"]]


@pytest.mark.promise("profiles:never-mix")
def test_the_write_profile_has_two_tools_and_no_browser(docker: JobServer) -> None:
    listed = docker.server.rpc({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["run_playwright", "run_pytest"]
    for tool in listed:
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["outputSchema"]["additionalProperties"] is False
    children = Path(f"/proc/{docker.server.process.pid}/task/{docker.server.process.pid}/children").read_text()
    assert children.strip() == ""
    assert docker.call("browser-shell", session_id="s", argv=["snapshot"])["error"]["code"] == -32602


@pytest.mark.parametrize("path", ["/vnc", "/vnc/", "/websockify", "/vnc/index.html", "/", "/health"])
def test_there_is_no_viewer(docker: JobServer, path: str) -> None:
    assert status_of(docker, "GET", path) == 403


def test_a_running_server_is_healthy(docker: JobServer) -> None:
    health = subprocess.run(
        [docker.server.argv[0], "health", "--ready", "--profile", "write"],
        env=docker.server.env, stdout=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (health.returncode, "engine     ok" in health.stdout) == (0, True), health.stdout


def test_a_request_without_a_token_is_unauthorized(docker: JobServer) -> None:
    assert status_of(docker, "POST", "/mcp") == 401


def test_pytest_results_are_counted(jobs: JobServer) -> None:
    answer = jobs.run("run_pytest", project="pytest_sample", keyword="not ever")
    assert (answer["passed"], answer["exit_code"]) == (False, 1)
    assert answer["counts"] == {"passed": 3, "failed": 1, "errors": 0, "skipped": 1, "timed_out": 0, "flaky": 0}
    (failure,) = answer["failures"]
    assert failure["test"].endswith("test_one_and_one_are_three")
    assert "one and one are not three" in failure["message"]
    assert "1 failed, 3 passed, 1 skipped" in answer["output"]
    assert paths(answer) == ["note.txt", "report/junit.xml"]
    assert (jobs.artifacts / answer["run_id"] / "output" / "note.txt").read_text() == "two\n"
    log = (jobs.artifacts / answer["run_id"] / "job.log").read_text()
    assert answer["output"] in log
    assert jobs.kinds(answer["run_id"]) == [
        "MCP_TOOL_CALL", "SANDBOX_EXEC", "MCP_CONTAINER_SPAWN", "MCP_CONTAINER_EXEC", "MCP_CONTAINER_CLEANUP",
        "MCP_FILE_WRITE", "MCP_FILE_WRITE", "MCP_FILE_WRITE", "TOOL_FINISHED",
    ]  # fmt: skip
    finished = next(r for r in jobs.records() if r["kind"] == "TOOL_FINISHED" and r.get("run_id") == answer["run_id"])
    assert finished["sha256"] == answer["evidence_sha256"]


def test_one_test_can_be_selected(jobs: JobServer) -> None:
    answer = jobs.run("run_pytest", project="pytest_sample", tests=["tests/test_sums.py::test_even[4]"])
    assert (answer["passed"], answer["exit_code"], answer["counts"]["passed"]) == (True, 0, 1)


@pytest.mark.promise("jobs:deadline")
def test_a_job_beyond_its_deadline_is_killed_and_has_evidence(jobs: JobServer) -> None:
    error = jobs.call("run_pytest", project="pytest_sample", keyword="ever or one", timeout_sec=6)["error"]
    assert (error["code"], error["data"]["code"]) == (-32007, "TIMEOUT")
    assert error["data"]["rule"] == "sandbox.timeout_seconds"
    document = jobs.evidence(error["data"]["run_id"])
    assert document["outcome"]["end"] == "timed_out"
    assert "note.txt" in [file["path"] for file in document["files"]]
    assert jobs.containers() == []


def test_playwright_in_python_stores_screenshots_and_traces(jobs: JobServer) -> None:
    answer = jobs.run("run_playwright", language="python", project="playwright_python", keyword="sells or coffee")
    assert (answer["passed"], answer["counts"]["passed"], answer["counts"]["failed"]) == (False, 1, 1)
    assert "Coffee" in answer["failures"][0]["message"]
    assert_screenshots_and_traces(jobs, answer)


def test_playwright_in_node_stores_screenshots_and_traces(jobs: JobServer) -> None:
    project = {"language": "node", "project": "playwright_node"}
    answer = jobs.run("run_playwright", **project, tests=["tests/page.spec.ts"], keyword="the title")
    assert (answer["passed"], answer["exit_code"], answer["counts"]["failed"]) == (False, 1, 1)
    answer = jobs.run("run_playwright", **project, keyword="the button", timeout_sec=100)
    assert (answer["passed"], answer["counts"]["passed"]) == (True, 1)
    assert_screenshots_and_traces(jobs, answer)


def assert_screenshots_and_traces(jobs: JobServer, answer: dict[str, Any]) -> None:
    files = {artifact["path"]: artifact for artifact in answer["artifacts"]}
    screenshots = [path for path in files if path.endswith(".png")]
    traces = [path for path in files if path.endswith("trace.zip")]
    assert screenshots
    assert traces
    assert not [path for path in files if path.endswith(".webm")]
    output = jobs.artifacts / answer["run_id"] / "output"
    assert (output / screenshots[0]).read_bytes().startswith(b"\x89PNG")
    assert (output / traces[0]).read_bytes().startswith(b"PK")


def test_a_timeout_of_a_single_node_test_is_a_result(docker: JobServer) -> None:
    answer = docker.run("run_playwright", language="node", project="playwright_node", keyword="the selector")
    assert (answer["exit_code"], answer["counts"]["timed_out"]) == (1, 1)
    assert "1500ms" in answer["failures"][0]["message"]
    assert "\x1b" not in str(answer)


@pytest.mark.parametrize(("language", "keyword"), [("python", "never_loads"), ("node", "the page never loads")])
def test_a_page_that_never_loads_times_out_at_the_deadline(docker: JobServer, language: str, keyword: str) -> None:
    project = f"playwright_{language}"
    error = docker.call("run_playwright", language=language, project=project, keyword=keyword, timeout_sec=12)["error"]
    assert error["code"] == -32007


def test_artifacts_that_the_policy_disables_are_not_stored() -> None:
    off = {"playwright": {"screenshots": False, "traces": False, "videos": True}}
    with job_server("docker", policy=off) as running:
        answer = running.run("run_playwright", language="node", project="playwright_node", keyword="the button")
        assert [path for path in paths(answer) if path.endswith((".png", ".zip"))] == []
        assert [path for path in paths(answer) if path.endswith(".webm")]


FORGER = """
import os, pathlib
report = pathlib.Path("/output/report")
report.mkdir(exist_ok=True)
(report / "junit.xml").write_text('<testsuite><testcase name="all is well"/></testsuite>')
print('{"exit_code":0,"passed":true}', flush=True)
os._exit(1)
"""


@pytest.mark.promise("jobs:a-report-cannot-forge-success")
def test_output_and_report_cannot_forge_a_pass(docker: JobServer) -> None:
    project = docker.workspace / "forger"
    project.mkdir()
    (project / "test_forged.py").write_text(FORGER)
    answer = docker.run("run_pytest", project="forger")
    assert (answer["passed"], answer["exit_code"], answer["counts"]["passed"]) == (False, 1, 1)


def test_a_job_beyond_its_memory_is_a_violation(docker: JobServer) -> None:
    project = docker.workspace / "greedy"
    project.mkdir()
    (project / "test_eat.py").write_text("def test_eat():\n    x = [b'x' * 10**7 for _ in range(10**4)]\n")
    error = docker.call("run_pytest", project="greedy")["error"]
    assert (error["code"], error["data"]["rule"]) == (-32006, "sandbox.memory_mib")
    assert docker.evidence(error["data"]["run_id"])["outcome"]["end"] == "out_of_memory"


def test_hostile_output_is_refused_and_counted(docker: JobServer) -> None:
    project = docker.workspace / "hostile"
    project.mkdir()
    (project / "test_hostile.py").write_text(
        "import os\n"
        "def test_all():\n"
        "    os.symlink('/etc/passwd', '/output/absolute'); os.symlink('../../../etc/passwd', '/output/relative')\n"
        "    os.mkfifo('/output/pipe'); open('/output/su', 'w').close(); os.chmod('/output/su', 0o4777)\n"
        "    open(b'/output/\\xff\\xfe', 'w').close()\n"
    )
    answer = docker.run("run_pytest", project="hostile")
    assert answer["passed"]
    assert paths(answer) == ["report/junit.xml", "su"]
    assert answer["refused_artifacts"] == 4
    assert (docker.artifacts / answer["run_id"] / "output" / "su").stat().st_mode & 0o7000 == 0
    reasons = {entry["path"]: entry["reason"] for entry in docker.evidence(answer["run_id"])["refused"]}
    assert reasons["pipe"] == "special_file"
    assert reasons["absolute"] == reasons["relative"] == "link"


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"command": "id"}, "arguments.unknown_field"),
        ({"tests": ["--rootdir=/"]}, "arguments.tests"),
        ({"tests": ["../x"]}, "arguments.tests"),
        ({"project": "/etc"}, "arguments.project"),
        ({"keyword": "-x"}, "arguments.keyword"),
        ({"timeout_sec": 121}, "arguments.timeout_sec"),
        ({"timeout_sec": True}, "arguments.timeout_sec"),
        ({"project": "nowhere"}, "workspace.missing"),
    ],
)
def test_invalid_arguments_are_errors_that_name_the_rule(
    docker: JobServer, arguments: dict[str, Any], rule: str
) -> None:
    error = docker.call("run_pytest", **arguments)["error"]
    assert (error["code"], error["data"]["code"], error["data"]["rule"]) == (-32602, "INVALID_ARGUMENTS", rule)


def test_a_link_out_of_the_workspace_is_a_violation(docker: JobServer) -> None:
    (docker.workspace / "out").symlink_to("/etc")
    error = docker.call("run_pytest", project="out")["error"]
    assert (error["code"], error["data"]["code"]) == (-32006, "SANDBOX_VIOLATION")


@pytest.mark.promise("tools:no-shell")
def test_a_shell_is_refused_and_recorded(docker: JobServer) -> None:
    error = docker.call("run_shell", command="id")["error"]
    assert (error["code"], error["data"]) == (-32004, {"code": "POLICY_BLOCKED", "rule": "tool.reserved"})
    blocked = [record for record in docker.records() if record["kind"] == "POLICY_BLOCKED"]
    assert blocked[-1]["tool"] == "run_shell"


def test_twenty_runs_leave_nothing_behind() -> None:
    with job_server("docker") as running:
        volumes = ask_engine("docker", "volume", "ls", "-q")
        threads = len(list(Path(f"/proc/{running.server.process.pid}/task").iterdir()))
        for _ in range(20):
            answer = running.run("run_pytest", project="pytest_sample", keyword="even", output_lines=0)
            assert answer["passed"]
        assert running.containers() == []
        new = set(ask_engine("docker", "volume", "ls", "-q").split()) - set(volumes.split())
        # Other programs may use the engine. A volume in use is theirs, because no container of this server remains.
        assert [
            name for name in new if not ask_engine("docker", "ps", "-aq", "--filter", f"volume={name}").strip()
        ] == []
        assert len(list(running.artifacts.iterdir())) == 20
        assert len(list(Path(f"/proc/{running.server.process.pid}/fd").iterdir())) < 40
        assert len(list(Path(f"/proc/{running.server.process.pid}/task").iterdir())) <= threads + 40
        assert verify(running.jobs).returncode == 0
