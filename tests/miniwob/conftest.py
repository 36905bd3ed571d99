"""The MiniWoB pages on loopback, and one real server to solve them with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.miniwob.episodes import Episode, Episodes
from support.pages import running_site
from support.server import Server, running_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/miniwob/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def episodes() -> Iterator[Episodes]:
    with running_site() as site:
        yield Episodes(site)


@pytest.fixture(scope="module")
def server(episodes: Episodes) -> Iterator[Server]:
    policy = {
        "open": {"unsafe_allow_addresses": [f"127.0.0.1:{episodes.site.port}"]},
        "output": {"screenshot_format": "png"},  # Exact colours.
    }
    with running_server(policy) as running:
        yield running


@pytest.fixture
def begin(episodes: Episodes, server: Server) -> Iterator[Callable[[str, int], Episode]]:
    """Starts an episode of a task in a session of its own."""
    session = server.session("miniwob")

    def start(task: str, seed: int) -> Episode:
        return episodes.begin(session, task, seed)

    yield start
    session.run("close")
