"""For every suite."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.redis_server import RedisServer

NOTHING_SKIPPED = "BROWSER_SHELL_TEST_ALL"
"""Set where every test has to run, as in CI: what is skipped there has failed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get(NOTHING_SKIPPED) == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and here nothing may be: {call.excinfo and call.excinfo.value}"
    return report


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    from support.redis_server import running_redis  # Lazy import: few tests need the Redis client.

    with running_redis() as server:
        yield server
