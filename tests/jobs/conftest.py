"""Real engines with the real image. Missing ones are installed, started and built; no test is skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.job_box import JobBox


@pytest.fixture(scope="session", params=["docker", "podman"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobBox]:
    running = JobBox(name=request.param, directory=tmp_path_factory.mktemp(request.param))
    yield running
    remaining = running.labelled()
    running.close()
    assert remaining == [], "a run did not remove its container"
