"""The gate on a Redis that several servers share. Only a server that has one loads this, and the client with it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from limits.aio.storage import RedisStorage
from limits.errors import StorageError
from redis.asyncio import BlockingConnectionPool, Redis

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import Clock, NewId
from browser_shell.limits.budget import BudgetBook
from browser_shell.limits.gate import LimitsGate
from browser_shell.limits.shared_places import SharedSlots
from browser_shell.limits.windows import CallWindows
from browser_shell.policy.document import LimitsSection

_PREFIX = "browser-shell"
_SOCKET_SECONDS = 1.0
_CONNECTIONS = 32


@asynccontextmanager
async def shared_gate(
    rules: LimitsSection, *, redis_url: str, clock: Clock, new_id: NewId
) -> AsyncIterator[LimitsGate]:
    """A Redis that is away refuses calls, and does not keep the server from starting. Raises: ConfigurationInvalid."""
    pool = _connections(redis_url)
    redis = Redis(connection_pool=pool)
    # The address only chooses the kind; the connections are those of the pool, password included.
    counters = RedisStorage(
        "async+redis://",
        wrap_exceptions=True,
        implementation="redispy",
        key_prefix=_PREFIX,
        connection_pool=pool,  # type: ignore[arg-type]  # documented; the library types all options alike
    )
    places = SharedSlots(redis, prefix=_PREFIX)
    gate = LimitsGate(
        rules=rules,
        windows=CallWindows(counters),
        # The library adds this process's clock to the seconds that Redis names; here it is taken off again.
        budgets=BudgetBook(counters=counters, now=time.time),
        places=places,
        clock=clock,
        new_id=new_id,
        counters_away=(StorageError, OSError),
    )
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(places.keep)
            yield gate
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(_SOCKET_SECONDS, shield=True):
            await pool.aclose()


def _connections(redis_url: str) -> BlockingConnectionPool:
    try:
        return BlockingConnectionPool.from_url(
            redis_url,
            max_connections=_CONNECTIONS,
            timeout=_SOCKET_SECONDS,
            socket_timeout=_SOCKET_SECONDS,
            socket_connect_timeout=_SOCKET_SECONDS,
        )
    except ValueError:
        # Without the cause's words: they quote the address, and it may hold a password.
        raise ConfigurationInvalid("BROWSER_SHELL_LIMITS_REDIS: is not an address of a Redis") from None
