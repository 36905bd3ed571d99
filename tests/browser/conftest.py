"""Fixtures of the browser suite: a site and a server that all tests share, and a server for a test that breaks it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from support.pages import Site, running_site
from support.server import Server, Session, running_server

_SESSION_NUMBERS = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/browser/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture(scope="session")
def server(site: Site) -> Iterator[Server]:
    with running_server({"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}}) as running:
        yield running


@pytest.fixture
def browser(server: Server) -> Iterator[Session]:
    """A fresh session of the shared server."""
    session = server.session(f"t{next(_SESSION_NUMBERS)}")
    yield session
    session.run("close")


@pytest.fixture
def own_server(site: Site) -> Iterator[Server]:
    """A server for one test to break."""
    with running_server({"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}}) as running:
        yield running
