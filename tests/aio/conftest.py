"""The overlay on the stand-in, as scripts/test-aio built it. A suite that cannot run is a failure, not a skip."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from support.aio import LOCKS, Aio, Beginning


@pytest.fixture(scope="session")
def aio() -> Aio:
    missing = [name for name in ("AIO_ENGINE", "AIO_SOCKET", "AIO_OVERLAY", "AIO_STAND_IN") if not os.environ.get(name)]
    assert not missing, f"start this suite by scripts/test-aio: {missing}"
    env = {key: value for key, value in os.environ.items() if key != "CONTAINER_HOST"}
    env["CONTAINER_HOST" if os.environ["AIO_ENGINE"] == "podman" else "DOCKER_HOST"] = os.environ["AIO_SOCKET"]
    return Aio(os.environ["AIO_ENGINE"], os.environ["AIO_OVERLAY"], os.environ["AIO_STAND_IN"], env)


@pytest.fixture(scope="session")
def whole_report(aio: Aio) -> Iterator[Beginning]:
    """Run the overlay behind every lock that AIO's own start allows."""
    beginning = Beginning(aio, aio.overlay, LOCKS)
    yield beginning
    beginning.report()


@pytest.fixture(scope="session")
def report_without_overlay(aio: Aio) -> Iterator[Beginning]:
    """The same checks on the stand-in as it is, with its proxy on: what they must find."""
    beginning = Beginning(aio, aio.stand_in, ("--env", "PROXY_SERVER=true"))
    yield beginning
    beginning.report()
