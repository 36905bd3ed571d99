"""An engine that is missing, refuses, answers garbage or dies: a clear error, and no container remains."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from browser_shell.core.errors import SandboxUnavailable, SandboxViolation
from support.engine_relay import EngineRelay, Fault, relaying
from support.job_box import JobBox, remaining_processes

STEPS = {
    "look for the image": rb"GET \S*/images/",
    "make a container": rb"POST \S*/containers/create",
    "listen to a container": rb"POST \S*/attach",
    "start a container": rb"POST \S*/start",
    "wait for a container": rb"POST \S*/wait",
}


@pytest.fixture
def relay(box: JobBox) -> Iterator[EngineRelay]:
    with tempfile.TemporaryDirectory() as directory, relaying(box.address, Path(directory)) as running:
        yield running


@pytest.fixture
def behind(box: JobBox, relay: EngineRelay, tmp_path: Path) -> Iterator[JobBox]:
    """A second server that uses the same engine through the relay."""
    other = JobBox(name=box.name, directory=tmp_path, address=relay.address, image_id=box.image_id)
    yield other
    other.lock.release()


@pytest.mark.promise("jobs:faults")
@pytest.mark.parametrize(
    ("step", "fault"),
    # The response to "start" has no body.
    [
        (step, fault)
        for step in STEPS
        for fault in ("error", "cut", "garbage")
        if (step[:5], fault) != ("start", "garbage")
    ],
)
def test_a_failed_step_is_an_error_and_leaves_no_container(
    box: JobBox, behind: JobBox, relay: EngineRelay, step: str, fault: Fault
) -> None:
    relay.failing, relay.fault = re.compile(STEPS[step]), fault
    order = behind.order(["true"])
    with pytest.raises(SandboxUnavailable) as raised:
        anyio.run(behind.finish, order)
    assert "container engine" in raised.value.public_message
    assert box.labelled(order.run_id) == []


@pytest.mark.promise("jobs:faults")
def test_a_failed_removal_is_retried(box: JobBox, behind: JobBox, relay: EngineRelay) -> None:
    relay.failing, relay.times = re.compile(rb"DELETE "), 2
    order = behind.order(["true"])
    anyio.run(behind.finish, order)
    assert relay.times == 0
    assert box.labelled(order.run_id) == []


@pytest.mark.promise("jobs:faults")
def test_a_container_that_could_not_be_removed_is_swept_later(box: JobBox, behind: JobBox, relay: EngineRelay) -> None:
    relay.failing = re.compile(rb"DELETE ")
    order = behind.order(["true"])
    with pytest.raises(SandboxUnavailable, match="remove"):
        anyio.run(behind.finish, order)
    assert len(box.labelled(order.run_id)) == 1
    relay.failing = None
    assert anyio.run(behind.sweep) == [order.run_id]
    assert box.labelled(order.run_id) == []


@pytest.mark.promise("jobs:faults")
def test_an_engine_that_dies_during_a_run_is_an_error_and_its_container_is_swept(
    box: JobBox, behind: JobBox, relay: EngineRelay
) -> None:
    order = behind.order(["sh", "-c", "echo started; sleep 600"])
    created: list[str] = []

    def stop_engine(_: bytes) -> None:
        relay.die()

    async def run() -> None:
        await behind.finish(order, on_output=stop_engine, on_created=created.append)

    with pytest.raises(SandboxUnavailable, match="container engine"):
        anyio.run(run)
    behind.lock.release()
    behind.lock.path.touch()
    assert anyio.run(box.sweep) == [order.run_id]
    assert remaining_processes(created[0]) == []


def test_an_address_without_an_engine_is_an_error(tmp_path: Path, box: JobBox) -> None:
    nowhere = JobBox(name=box.name, directory=tmp_path, address=f"unix://{tmp_path}/none.sock", image_id=box.image_id)
    for attempt in (nowhere.sweep, lambda: nowhere.finish(nowhere.order(["true"]))):
        with pytest.raises(SandboxUnavailable, match="does not answer"):
            anyio.run(attempt)
    nowhere.close()


@pytest.mark.promise("jobs:no-pull")
def test_a_missing_image_is_never_pulled(box: JobBox, behind: JobBox, relay: EngineRelay) -> None:
    relay.failing = re.compile(rb"POST \S*/images/")
    missing = "sha256:" + "0" * 64
    with pytest.raises(SandboxUnavailable, match="make jobs-image"):
        anyio.run(behind.containers.image_id, "browser-shell/no-such-image:latest")
    behind.image_id = missing
    with pytest.raises(SandboxUnavailable, match="make jobs-image"):
        anyio.run(behind.finish, behind.order(["true"]))
    assert relay.times == 1000, "a pull was requested"


@pytest.mark.promise("jobs:pinned")
def test_an_image_tag_is_refused(box: JobBox, tmp_path: Path) -> None:
    loose = JobBox(name=box.name, directory=tmp_path, image_id="browser-shell/jobs:latest")
    with pytest.raises(SandboxViolation, match="image"):
        anyio.run(loose.finish, loose.order(["true"]))
    loose.close()


def test_a_workspace_that_jobs_cannot_read_is_an_error(box: JobBox) -> None:
    order = box.order(["true"])
    order.workspace.chmod(0o700)
    with pytest.raises(SandboxUnavailable, match="workspace"):
        anyio.run(box.finish, order)


def test_an_output_directory_that_is_not_empty_is_refused(box: JobBox) -> None:
    order = box.order(["true"])
    order.output.mkdir()
    (order.output / "old").touch()
    with pytest.raises(SandboxUnavailable, match="empty"):
        anyio.run(box.finish, order)
