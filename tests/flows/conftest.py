from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from browser_shell.core.ports import CallHandler
from support.loopback_server import serving
from support.wire import Connect, Wire


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(era: str) -> Connect:
    """Start a server and connect a client of the era."""

    @asynccontextmanager
    async def serve_and_connect(handler: CallHandler) -> AsyncIterator[Wire]:
        async with serving(handler) as address, httpx2.AsyncClient(base_url=address, timeout=10) as http:
            yield Wire(http, era)

    return serve_and_connect
