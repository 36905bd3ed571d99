from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.redis_server import RedisServer, running_redis


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server
