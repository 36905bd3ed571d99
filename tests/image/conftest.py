"""For each engine: a network, a site that the box may visit, and one box for all tests that do not damage it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from support.boxes import Box, running_box
from support.canaries import Canary, running_canary
from support.engine import Engine, Network, answering_engine, own_network
from support.pages import Site, running_site

LAST = "test_budgets.py"
ENGINES = [name for name in os.environ.get("BROWSER_SHELL_TEST_ENGINES", "docker").split(",") if name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name == LAST)


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with answering_engine(request.param) as answering:
        yield answering


@pytest.fixture(scope="session")
def network(engine: Engine) -> Iterator[Network]:
    with own_network(engine) as network:
        yield network


@pytest.fixture(scope="session")
def site(network: Network) -> Iterator[Site]:
    """A site on the host's private address in the network, which the policy must allow."""
    with running_site(network.gateway) as running:
        yield running


@pytest.fixture(scope="session")
def allowed(network: Network) -> Iterator[Canary]:
    """A canary that the policy allows, to prove that the attacks of pages work at all."""
    with running_canary(network.gateway) as canary:
        yield canary


@pytest.fixture(scope="session")
def forbidden(network: Network) -> Iterator[Canary]:
    """A canary at the site's address on a port that the policy does not allow."""
    with running_canary(network.gateway) as canary:
        yield canary


@pytest.fixture(scope="session")
def policy(site: Site, allowed: Canary) -> dict[str, Any]:
    return {
        "open": {"unsafe_allow_addresses": [f"{site.host}:{site.port}", allowed.authority]},
        "sessions": {"max_per_subject": 8},  # All tests are one caller.
    }


@pytest.fixture(scope="session", autouse=True)
def idle_box(engine: Engine, network: Network, policy: dict[str, Any]) -> Iterator[Box]:
    """A box that stays idle during the other tests, to measure its idle memory at the end."""
    with running_box(engine, network=network.name, policy=policy) as running:
        yield running


@pytest.fixture(scope="session")
def box(engine: Engine, network: Network, policy: dict[str, Any]) -> Iterator[Box]:
    with running_box(engine, network=network.name, policy=policy) as running:
        yield running
