"""Every row of the sandbox corpus has the expected outcome in real containers."""

from __future__ import annotations

import resource
import stat
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from browser_shell.core.containers import ContainerEnd, ContainerLimits
from support.corpus_rows import load
from support.job_box import MIB, JobBox, processes_mentioning, remaining_processes

ROWS = load("sandbox_attacks.jsonl")
HALF_A_CORE = ContainerLimits(timeout_seconds=6, cpus=0.5)
QUIET_KINDS = ("raises", "returns", "either")
"""Rows that end by themselves and change nothing. They share a container."""


def rows_with(*kinds: str) -> list[Any]:
    return [pytest.param(row, id=row["id"]) for row in ROWS if any(kind in row["expect"] for kind in kinds)]


def test_every_row_of_the_corpus_has_a_test() -> None:
    tested = {*QUIET_KINDS, "collector", "killed", "no_orphans", "output_capped", "exit_code", "container_only"}
    assert len(ROWS) > 20
    assert [row["id"] for row in ROWS if not tested & row["expect"].keys()] == []


@pytest.fixture(scope="module")
def outcomes(box: JobBox) -> dict[str, dict[str, Any]]:
    quiet = [row for row in ROWS if any(kind in row["expect"] for kind in QUIET_KINDS)]
    return box.outcomes({row["id"]: row["code"] for row in quiet})


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize("row", rows_with(*QUIET_KINDS))
def test_a_forbidden_operation_fails(row: dict[str, Any], outcomes: dict[str, dict[str, Any]]) -> None:
    expect, outcome = row["expect"], outcomes[row["id"]]
    if "raises" in expect:
        assert expect["raises"] in outcome["raised"], outcome
    elif "returns" in expect:
        assert outcome["out"] == str(expect["returns"]), outcome
    else:
        assert outcome["code"] in (0, 1), outcome


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize("row", rows_with("collector"))
def test_hostile_output_arrives_as_regular_files_only(box: JobBox, row: dict[str, Any]) -> None:
    finished = box.python(row["code"])
    assert finished.report.exit_code == 0, finished.log
    assert finished.report.output_complete
    for path in finished.output.rglob("*"):
        facts = path.lstat()
        assert stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)
        assert stat.S_IMODE(facts.st_mode) in (0o600, 0o700)
    mounted = box.python("print([line for line in open('/proc/mounts') if ' /output ' in line])").log
    assert b"nosuid" in mounted
    assert b"nodev" in mounted


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize("row", [each for each in rows_with("killed") if each.values[0]["expect"]["killed"] == "oom"])
def test_a_program_beyond_the_memory_limit_is_killed(box: JobBox, row: dict[str, Any]) -> None:
    finished = box.python(row["code"])
    assert finished.report.end is ContainerEnd.OUT_OF_MEMORY


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize(
    "row", [each for each in rows_with("killed") if each.values[0]["expect"]["killed"] == "timeout"]
)
def test_a_program_beyond_its_deadline_is_killed_and_stays_within_its_cpu_quota(
    box: JobBox, row: dict[str, Any]
) -> None:
    # Half a core: on a busy machine a program without a quota might not reach a full one.
    used = anyio.run(_run_and_measure, box, row["code"])
    assert used <= row["expect"].get("cpu_at_most", 1.1) * HALF_A_CORE.cpus


async def _run_and_measure(box: JobBox, code: str) -> float:
    """Return the cores used while the program runs. It must end at its deadline and leave no process."""
    order = box.order(["python", "/work/program.py"], files={"program.py": code}, limits=HALF_A_CORE)
    created: list[str] = []
    cores = 0.0

    async def measure() -> None:
        nonlocal cores
        await anyio.sleep(2.5)
        before, start = _cpu_seconds(created[0]), time.monotonic()
        await anyio.sleep(2)
        cores = (_cpu_seconds(created[0]) - before) / (time.monotonic() - start)

    async with anyio.create_task_group() as group:
        group.start_soon(measure)
        finished = await box.finish(order, on_created=created.append)
    assert finished.report.end is ContainerEnd.TIMED_OUT
    seconds = finished.report.timings.ended - finished.report.timings.started
    assert HALF_A_CORE.timeout_seconds <= seconds <= HALF_A_CORE.timeout_seconds + 10
    assert await anyio.to_thread.run_sync(remaining_processes, created[0]) == []
    return cores


def _cpu_seconds(container_id: str) -> float:
    ticks = 0
    for pid in processes_mentioning(container_id):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize("row", rows_with("no_orphans"))
def test_a_child_in_another_session_is_killed_with_the_container(box: JobBox, row: dict[str, Any]) -> None:
    finished = box.python(row["code"], limits=ContainerLimits(timeout_seconds=20))
    assert finished.report.end is ContainerEnd.EXITED
    assert remaining_processes(finished.report.container_id) == []


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize("row", rows_with("output_capped"))
def test_a_flood_of_output_is_cut_and_uses_no_memory_of_the_server(box: JobBox, row: dict[str, Any]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF)
    finished = box.python(row["code"], limits=ContainerLimits(timeout_seconds=5, log_bytes=MIB))
    assert finished.report.log_cut
    assert finished.report.log_size == len(finished.log) == MIB
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 32 * 1024
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5, (
        "a flood must not use a whole core"
    )


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize("row", rows_with("exit_code"))
def test_printed_output_does_not_change_the_result(box: JobBox, row: dict[str, Any]) -> None:
    finished = box.python(row["code"])
    assert finished.report.exit_code == row["expect"]["exit_code"]
    assert finished.report.end is ContainerEnd.EXITED


@pytest.mark.promise("jobs:corpus")
@pytest.mark.parametrize("row", rows_with("container_only"))
def test_plugin_code_runs_in_the_container_only(box: JobBox, row: dict[str, Any]) -> None:
    files = {"conftest.py": row["code"], "test_it.py": "def test_it(): pass\n"}
    finished = box.run("python", "-m", "pytest", "-p", "no:cacheprovider", files=files)
    assert finished.report.exit_code == 0, finished.log
    assert "uid=10001" in (finished.output / "pwn").read_text("utf-8")
    assert not Path("/output/pwn").exists()
