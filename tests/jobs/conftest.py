"""Real engines with the real image. Missing ones are installed, started and built; no test is skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.job_box import JobBox
from support.job_server import JobServer, job_server


@pytest.fixture(scope="session", params=["docker", "podman"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobBox]:
    running = JobBox(name=request.param, directory=tmp_path_factory.mktemp(request.param))
    yield running
    remaining = running.labelled()
    running.close()
    assert remaining == [], "a run did not remove its container"


@pytest.fixture(scope="module")
def docker() -> Iterator[JobServer]:
    with job_server("docker") as server:
        yield server


@pytest.fixture(scope="module")
def podman() -> Iterator[JobServer]:
    with job_server("podman") as server:
        yield server
