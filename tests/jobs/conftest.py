"""Real engines with the real image. What is missing is installed, started and built; nothing is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.job_box import JobBox


@pytest.fixture(scope="session", params=["docker", "podman"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobBox]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    running = JobBox(name=request.param, folder=folder)
    yield running
    left = running.labelled()
    running.close()
    assert left == [], "a run left its container behind"
