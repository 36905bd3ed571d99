"""The rows of the truth table, run in several sessions of one server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from support.truth_stage import running_rows, running_stage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/truth/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[list[str]]]]:
    """Findings of the rows that were selected, by their id."""
    own = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    rows = [item.callspec.params["row"] for item in own]
    with running_stage() as (stage, server), running_rows(rows, stage, server) as findings_by_id:
        yield findings_by_id
