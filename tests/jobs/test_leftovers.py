"""Nothing outlives a run, and what a killed server leaves is gone at the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from browser_shell.core.errors import AuditUnavailable
from browser_shell.jobs.containers.engine import ServerState, server_state
from support.job_box import ROOT, JobBox, processes_left

HOLDER = """
import sys, anyio
from pathlib import Path
from support.job_box import JobBox
box = JobBox(name=sys.argv[1], folder=Path(sys.argv[2]))
order = box.order(["sh", "-c", "echo begun; sleep 600"])
def begun(_):
    print(order.run_id, flush=True)
async def run():
    await box.finish(order, on_output=begun)
anyio.run(run)
"""


def holder(box: JobBox, folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Another server, in the middle of a run."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, box.name, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    run_id = process.stdout.readline().strip()
    assert run_id
    return process, run_id


@pytest.mark.promise("jobs:sweep")
def test_the_containers_of_a_killed_server_are_swept_and_those_of_a_live_one_are_not(
    box: JobBox, tmp_path: Path
) -> None:
    process, run_id = holder(box, tmp_path)
    try:
        (container,) = box.labelled(run_id)
        assert anyio.run(box.sweep) == []
        assert box.labelled(run_id) == [container]
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        assert box.labelled(run_id) == [container], "nobody has looked yet"
        assert anyio.run(box.sweep) == [run_id]
    finally:
        process.kill()
        process.communicate(timeout=10)
    assert box.labelled(run_id) == []
    assert processes_left(container) == []


@pytest.mark.promise("jobs:sweep")
def test_a_container_whose_server_cannot_be_judged_stays_until_its_deadline(box: JobBox) -> None:
    def make(deadline: int) -> str:
        labels = {"run": "strange", "server": "elsewhere", "lock": "/nonexistent/elsewhere.lock", "deadline": deadline}
        words = [word for name, value in labels.items() for word in ("--label", f"browser-shell.{name}={value}")]
        return box.client("create", "--network", "none", *words, box.image_id, "true").strip()

    late, early = make(1), make(2**40)
    try:
        assert anyio.run(box.sweep) == ["strange"]
        listed = box.client("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=browser-shell.server=elsewhere")
        assert listed.split() == [early]
        assert late != early
    finally:
        box.client("rm", "--force", early)


@pytest.mark.promise("jobs:sweep")
def test_a_sweep_leaves_this_servers_own_run_alone(box: JobBox) -> None:
    order = box.order(["sh", "-c", "echo begun; sleep 3; echo done"])

    async def run() -> None:
        begun = anyio.Event()

        async def sweep() -> None:
            await begun.wait()
            assert await box.sweep() == []

        async with anyio.create_task_group() as group:
            group.start_soon(sweep)
            finished = await box.finish(order, on_output=lambda _: begun.set())
        assert finished.log == b"begun\ndone\n"

    anyio.run(run)


@pytest.mark.promise("audit:no-record-no-run")
def test_a_container_whose_removal_cannot_be_recorded_stays(box: JobBox) -> None:
    labels = {"run": "unrecorded", "server": "elsewhere", "lock": "/nonexistent/elsewhere.lock", "deadline": 1}
    words = [word for name, value in labels.items() for word in ("--label", f"browser-shell.{name}={value}")]
    container = box.client("create", "--network", "none", *words, box.image_id, "true").strip()
    asked: list[tuple[str, str]] = []

    async def refuse(run_id: str, container_id: str) -> None:
        asked.append((run_id, container_id))
        raise AuditUnavailable("no space left on the audit disk")

    try:
        with pytest.raises(AuditUnavailable):
            anyio.run(box.containers.sweep, refuse)
        assert asked == [("unrecorded", container)]
        assert box.labelled("unrecorded") == [container]
        assert anyio.run(box.sweep) == ["unrecorded"]
    finally:
        box.client("rm", "--force", container)


@pytest.mark.promise("jobs:nothing-left")
def test_twenty_runs_leave_nothing_behind(box: JobBox) -> None:
    mounted: list[str] = []

    def look(container_id: str) -> None:
        mounted.append(box.client("inspect", "--format", "{{range .Mounts}}{{.Type}} {{end}}", container_id).strip())

    async def run() -> str:
        order = box.order(["sh", "-c", "sleep 100 & echo x > /output/x"])
        return (await box.finish(order, on_made=look)).report.container_id

    box.run("true")
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    ids = [anyio.run(run) for _ in range(20)]
    assert box.labelled() == []
    assert set(" ".join(mounted).split()) <= {"bind", "tmpfs"}, "a volume would outlive its container"
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files
    assert [pid for each in ids for pid in processes_left(each)] == []


def test_a_lock_tells_whether_its_server_lives(box: JobBox, tmp_path: Path) -> None:
    assert server_state(box.lock.path) is ServerState.ALIVE
    (tmp_path / "gone.lock").touch()
    assert server_state(tmp_path / "gone.lock") is ServerState.GONE
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(box.lock.path)
    for name in ("nowhere", "fifo", "link"):
        assert server_state(tmp_path / name) is ServerState.UNKNOWN
