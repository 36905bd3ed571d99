"""`evidence verify` accepts the state of a real server, and detects every change to it."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.job_server import JobServer, job_server, until, verify


def state_after_two_jobs(engine: str, copy: Path) -> Path:
    """Copy the state of a server that ran two jobs and was stopped."""
    with job_server(engine) as running:
        running.run("run_pytest", project="pytest_sample", keyword="one or even")
        running.run("run_playwright", language="python", project="playwright_python", keyword="sells")
        assert verify(running.jobs).returncode == 0, "evidence must be sound while the server runs"
        running.server.stop()
        shutil.copytree(running.jobs, copy)
    return copy


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return state_after_two_jobs("docker", tmp_path_factory.mktemp("original") / "jobs")


@pytest.fixture
def state(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "jobs")
    return tmp_path / "jobs"


def screenshot(state: Path) -> Path:
    return next(state.glob("artifacts/*/output/test-results/*/*.png"))


def a_run(state: Path) -> Path:
    """Return the directory of the run with a screenshot."""
    return screenshot(state).parents[3]


def test_unchanged_state_is_sound(state: Path) -> None:
    checked = verify(state)
    assert checked.returncode == 0, checked.stdout
    assert "2 runs" in checked.stdout
    one = verify(state, a_run(state).name, "--json")
    result = json.loads(one.stdout)
    assert (result["sound"], len(result["runs"]), result["runs"][0]["complete"]) == (True, 1, True)
    assert verify(state, str(a_run(state))).returncode == 0


def test_state_of_podman_runs_is_sound_until_it_is_changed(tmp_path: Path) -> None:
    state = state_after_two_jobs("podman", tmp_path / "jobs")
    assert verify(state).returncode == 0
    flip_a_byte_of_a_file(state)
    assert verify(state).returncode == 1


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)


def flip_a_byte_of_a_file(state: Path) -> None:
    change(screenshot(state))


def remove_a_file(state: Path) -> None:
    screenshot(state).unlink()


def add_a_file(state: Path) -> None:
    (a_run(state) / "output" / "more.txt").write_text("more")


def add_an_empty_directory(state: Path) -> None:
    (a_run(state) / "output" / "more").mkdir()


def add_a_link(state: Path) -> None:
    (a_run(state) / "output" / "more").symlink_to("/etc/passwd")


def add_a_file_beside(state: Path) -> None:
    (a_run(state) / "more.txt").write_text("more")


def lengthen_a_file(state: Path) -> None:
    with screenshot(state).open("ab") as file:
        file.write(b"\0")


def replace_a_file_by_a_link_to_its_copy(state: Path) -> None:
    file = screenshot(state)
    copy = state / "copy.png"
    shutil.copy(file, copy)
    file.unlink()
    file.symlink_to(copy)


def change_the_log_of_the_job(state: Path) -> None:
    change(a_run(state) / "job.log")


def edit(state: Path, key: str, value: object) -> None:
    path = a_run(state) / "evidence.json"
    document = json.loads(path.read_bytes())
    assert document[key] != value
    document[key] = value
    path.write_bytes(json.dumps(document, indent=1, ensure_ascii=True, sort_keys=True).encode() + b"\n")


def change_the_policy_digest(state: Path) -> None:
    edit(state, "policy_digest", "0" * 64)


def change_the_audit_record_of_the_evidence(state: Path) -> None:
    edit(state, "audit", {"sequence": 1, "sha256": "0" * 64})


def forge_file_and_evidence_together(state: Path) -> None:
    """Make file and evidence agree with each other, but not with the audit log."""
    change(screenshot(state))
    path = a_run(state) / "evidence.json"
    document = json.loads(path.read_bytes())
    forged = next(file for file in document["files"] if file["path"].endswith(".png"))
    forged["sha256"] = hashlib.sha256(screenshot(state).read_bytes()).hexdigest()
    path.write_bytes(json.dumps(document).encode())


def change_the_outcome(state: Path) -> None:
    edit(state, "outcome", {"end": "exited", "exit_code": 0})


def remove_the_evidence(state: Path) -> None:
    (a_run(state) / "evidence.json").unlink()


def pretend_that_the_run_is_in_progress(state: Path) -> None:
    (a_run(state) / "evidence.json").rename(a_run(state) / "run.json")


def make_up_a_run_in_progress(state: Path) -> None:
    made_up = state / "artifacts" / "deadbeef"
    (made_up / "output").mkdir(parents=True)
    (made_up / "run.json").write_text("{}")
    (made_up / "output" / "fake.png").write_bytes(screenshot(state).read_bytes())


def remove_the_run(state: Path) -> None:
    shutil.rmtree(a_run(state))


def swap_two_runs(state: Path) -> None:
    first, second = sorted((state / "artifacts").iterdir())
    first.rename(state / "aside")
    second.rename(first)
    (state / "aside").rename(second)


def change_a_record(state: Path) -> None:
    log = state / "audit.jsonl"
    content = log.read_bytes()
    assert b'"kind":"MCP_CONTAINER_EXEC"' in content
    log.write_bytes(content.replace(b'"tool":"run_pytest"', b'"tool":"run_nothing"', 1))


def change_the_policy_digest_of_a_record(state: Path) -> None:
    log = state / "audit.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if b'"kind":"MCP_CONTAINER_EXEC"' in line)
    members = json.loads(lines[at])
    lines[at] = lines[at].replace(members["policy_digest"].encode(), b"0" * 64)
    log.write_bytes(b"".join(lines))


def cut_the_log(state: Path) -> None:
    log = state / "audit.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-3]))


@pytest.mark.promise("evidence:any-change-is-found")
@pytest.mark.parametrize(
    "tamper",
    [
        flip_a_byte_of_a_file,
        remove_a_file,
        add_a_file,
        add_an_empty_directory,
        add_a_link,
        add_a_file_beside,
        lengthen_a_file,
        replace_a_file_by_a_link_to_its_copy,
        change_the_log_of_the_job,
        change_the_policy_digest,
        change_the_audit_record_of_the_evidence,
        forge_file_and_evidence_together,
        change_the_outcome,
        remove_the_evidence,
        pretend_that_the_run_is_in_progress,
        make_up_a_run_in_progress,
        remove_the_run,
        swap_two_runs,
        change_a_record,
        change_the_policy_digest_of_a_record,
        cut_the_log,
    ],
)
def test_every_change_is_detected(state: Path, tamper: Callable[[Path], None]) -> None:
    assert verify(state).returncode == 0
    tamper(state)
    checked = verify(state)
    assert checked.returncode == 1, checked.stdout
    assert "WRONG" in checked.stdout
    assert json.loads(verify(state, "--json").stdout)["sound"] is False


def test_a_run_under_another_policy_is_detected(state: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"playwright": {"videos": true}}')
    checked = verify(state, "--policy", str(policy))
    assert checked.returncode == 1
    assert "another policy" in checked.stdout


def test_a_run_that_does_not_exist_is_a_usage_error(state: Path) -> None:
    assert verify(state, "0" * 24).returncode == 2
    assert verify(state, "/nowhere").returncode == 2


WAITS = """
import pathlib, time

def test_wait():
    while not pathlib.Path("/work/go").exists():
        time.sleep(0.1)
"""


def test_a_run_in_progress_is_sound(docker: JobServer) -> None:
    (docker.workspace / "pytest_sample" / "tests" / "test_wait.py").write_text(WAITS)
    answers: list[dict[str, Any]] = []

    def call() -> None:
        answers.append(docker.run("run_pytest", project="pytest_sample", tests=["tests/test_wait.py"]))

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    until(lambda: any(record["kind"] == "MCP_CONTAINER_EXEC" for record in docker.records()))
    checked = verify(docker.jobs)
    (docker.workspace / "go").touch(mode=0o644)
    caller.join(60)
    assert checked.returncode == 0, checked.stdout
    assert "in progress" in checked.stdout
    assert answers[0]["passed"]
    assert "in progress" not in verify(docker.jobs).stdout
