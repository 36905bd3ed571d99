"""The overlay on the stand-in image, built by scripts/test-aio. Without it the suite fails."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from support.aio import LOCKS, Aio, BackgroundReport


@pytest.fixture(scope="session")
def aio() -> Aio:
    missing = [name for name in ("AIO_ENGINE", "AIO_SOCKET", "AIO_OVERLAY", "AIO_STAND_IN") if not os.environ.get(name)]
    assert not missing, f"start this suite with scripts/test-aio: {missing}"
    env = {key: value for key, value in os.environ.items() if key != "CONTAINER_HOST"}
    env["CONTAINER_HOST" if os.environ["AIO_ENGINE"] == "podman" else "DOCKER_HOST"] = os.environ["AIO_SOCKET"]
    return Aio(os.environ["AIO_ENGINE"], os.environ["AIO_OVERLAY"], os.environ["AIO_STAND_IN"], env)


@pytest.fixture(scope="session")
def whole_report(aio: Aio) -> Iterator[BackgroundReport]:
    """Report of the overlay with every lock that AIO's start permits."""
    background = BackgroundReport(aio, aio.overlay, LOCKS)
    yield background
    background.wait()


@pytest.fixture(scope="session")
def report_without_overlay(aio: Aio) -> Iterator[BackgroundReport]:
    """Report of the stand-in without overlay and with its proxy on, where most checks must fail."""
    background = BackgroundReport(aio, aio.stand_in, ("--env", "PROXY_SERVER=true"))
    yield background
    background.wait()
