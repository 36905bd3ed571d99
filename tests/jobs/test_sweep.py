"""Nothing outlives a run, and the next sweep removes the containers of a killed server."""

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
from support.job_box import JobBox, remaining_processes
from support.job_server import ROOT

OTHER_SERVER = """
import sys, anyio
from pathlib import Path
from support.job_box import JobBox
box = JobBox(name=sys.argv[1], directory=Path(sys.argv[2]))
order = box.order(["sh", "-c", "echo started; sleep 600"])
def on_output(_):
    print(order.run_id, flush=True)
async def run():
    await box.finish(order, on_output=on_output)
anyio.run(run)
"""


def start_other_server(box: JobBox, directory: Path) -> tuple[subprocess.Popen[str], str]:
    """Start another server with a run in progress; return its process and the run's id."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER_SERVER, box.name, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    run_id = process.stdout.readline().strip()
    assert run_id
    return process, run_id


@pytest.mark.promise("jobs:sweep")
def test_only_the_containers_of_a_killed_server_are_swept(box: JobBox, tmp_path: Path) -> None:
    process, run_id = start_other_server(box, tmp_path)
    try:
        (container,) = box.labelled(run_id)
        assert anyio.run(box.sweep) == []
        assert box.labelled(run_id) == [container]
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        assert box.labelled(run_id) == [container], "removed before the sweep"
        assert anyio.run(box.sweep) == [run_id]
    finally:
        process.kill()
        process.communicate(timeout=10)
    assert box.labelled(run_id) == []
    assert remaining_processes(container) == []


def create_foreign_container(box: JobBox, *, deadline: int) -> str:
    """Create a container whose server runs on another machine; return its id."""
    labels = {"run": "foreign", "server": "elsewhere", "lock": "/nonexistent/elsewhere.lock", "deadline": deadline}
    options = [option for name, value in labels.items() for option in ("--label", f"browser-shell.{name}={value}")]
    return box.client("create", "--network", "none", *options, box.image_id, "true").strip()


@pytest.mark.promise("jobs:sweep")
def test_a_container_of_an_unknown_server_is_swept_after_its_deadline(box: JobBox) -> None:
    late, early = create_foreign_container(box, deadline=1), create_foreign_container(box, deadline=2**40)
    try:
        assert anyio.run(box.sweep) == ["foreign"]
        listed = box.client("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=browser-shell.server=elsewhere")
        assert listed.split() == [early]
        assert late != early
    finally:
        box.client("rm", "--force", early)


@pytest.mark.promise("jobs:sweep")
def test_a_sweep_does_not_remove_a_run_in_progress(box: JobBox) -> None:
    order = box.order(["sh", "-c", "echo started; sleep 3; echo done"])

    async def run() -> None:
        started = anyio.Event()

        async def sweep() -> None:
            await started.wait()
            assert await box.sweep() == []

        async with anyio.create_task_group() as group:
            group.start_soon(sweep)
            finished = await box.finish(order, on_output=lambda _: started.set())
        assert finished.log == b"started\ndone\n"

    anyio.run(run)


@pytest.mark.promise("audit:no-record-no-run")
def test_a_container_is_not_removed_when_the_removal_cannot_be_recorded(box: JobBox) -> None:
    container = create_foreign_container(box, deadline=1)
    removals: list[tuple[str, str]] = []

    async def refuse(run_id: str, container_id: str) -> None:
        removals.append((run_id, container_id))
        raise AuditUnavailable("no space left on the audit disk")

    try:
        with pytest.raises(AuditUnavailable):
            anyio.run(box.containers.sweep, refuse)
        assert removals == [("foreign", container)]
        assert box.labelled("foreign") == [container]
        assert anyio.run(box.sweep) == ["foreign"]
    finally:
        box.client("rm", "--force", container)


@pytest.mark.promise("jobs:nothing-left")
def test_twenty_runs_leave_nothing_behind(box: JobBox) -> None:
    mounted: list[str] = []

    def inspect_mounts(container_id: str) -> None:
        mounted.append(box.client("inspect", "--format", "{{range .Mounts}}{{.Type}} {{end}}", container_id).strip())

    async def run() -> str:
        order = box.order(["sh", "-c", "sleep 100 & echo x > /output/x"])
        return (await box.finish(order, on_created=inspect_mounts)).report.container_id

    box.run("true")
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    ids = [anyio.run(run) for _ in range(20)]
    assert box.labelled() == []
    assert set(" ".join(mounted).split()) <= {"bind", "tmpfs"}, "a volume would outlive its container"
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files
    assert [pid for each in ids for pid in remaining_processes(each)] == []


def test_a_lock_shows_whether_its_server_is_alive(box: JobBox, tmp_path: Path) -> None:
    assert server_state(box.lock.path) is ServerState.ALIVE
    (tmp_path / "gone.lock").touch()
    assert server_state(tmp_path / "gone.lock") is ServerState.GONE
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(box.lock.path)
    for name in ("nowhere", "fifo", "link"):
        assert server_state(tmp_path / name) is ServerState.UNKNOWN
