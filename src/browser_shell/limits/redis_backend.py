"""Counters and slots on a Redis that several servers share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import structlog
from limits.aio.storage import RedisStorage
from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

from browser_shell.core.errors import ConfigurationInvalid

SLOT_SECONDS = 15
"""A slot expires after this time unless it is renewed, so that a killed server does not keep its slots."""
RENEW_SECONDS = 4.0
ERRORS = (RedisError, OSError)
"""Exceptions of counters and slots when Redis cannot be reached."""
_PREFIX = "browser-shell"
_SOCKET_SECONDS = 1.0
_CONNECTIONS = 32

# The scripts use the clock of Redis (TIME), so that servers with different clocks agree on what has expired.
_NOW = "local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000); "
_SET_EXPIRY = """
redis.call('ZADD', KEYS[1], now + ARGV[2] * 1000, ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2] * 2)
return 1
"""
_TAKE = f"""{_NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return 0
end
{_SET_EXPIRY}"""
_RENEW = _NOW + _SET_EXPIRY

log = structlog.get_logger()


@asynccontextmanager
async def open_redis(redis_url: str) -> AsyncIterator[tuple[RedisStorage, RedisSlots]]:
    """Connect counters and slots. An unreachable Redis raises one of `ERRORS` later, when they are used.

    Raises: ConfigurationInvalid.
    """
    pool = _connection_pool(redis_url)
    # The URL only selects the storage class. All connections, with the password, come from the pool.
    counters = RedisStorage(
        "async+redis://",
        implementation="redispy",
        key_prefix=_PREFIX,
        connection_pool=pool,  # type: ignore[arg-type]  # documented; the library types all options alike
    )
    slots = RedisSlots(Redis(connection_pool=pool))
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slots.keep_renewing)
            yield counters, slots
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(_SOCKET_SECONDS, shield=True):
            await pool.aclose()


def _connection_pool(redis_url: str) -> BlockingConnectionPool:
    try:
        return BlockingConnectionPool.from_url(
            redis_url,
            max_connections=_CONNECTIONS,
            timeout=_SOCKET_SECONDS,
            socket_timeout=_SOCKET_SECONDS,
            socket_connect_timeout=_SOCKET_SECONDS,
        )
    except ValueError:
        # The message of the cause quotes the URL, which may contain a password.
        raise ConfigurationInvalid("BROWSER_SHELL_LIMITS_REDIS: not a Redis URL") from None


class RedisSlots:
    """Slots in one sorted set for each key: lease ids by expiry time."""

    def __init__(self, redis: Redis, *, slot_seconds: int = SLOT_SECONDS) -> None:
        self._redis = redis
        self._slot_seconds = slot_seconds
        self._take = redis.register_script(_TAKE)
        self._renew = redis.register_script(_RENEW)
        self._leases: dict[str, str] = {}
        """Key by lease id, for renewal."""

    async def take(self, key: str, lease_id: str, *, limit: int) -> bool:
        taken = await self._take(keys=[self._name(key)], args=[lease_id, self._slot_seconds, limit])
        if taken:
            self._leases[lease_id] = key
        return bool(taken)

    async def give_back(self, key: str, lease_id: str) -> None:
        # Before the first await, so that no renewal starts after this.
        self._leases.pop(lease_id, None)
        await self._redis.zrem(self._name(key), lease_id)

    async def keep_renewing(self) -> None:
        """Renew the slots of this server until cancelled."""
        while True:
            await anyio.sleep(RENEW_SECONDS)
            try:
                with anyio.fail_after(RENEW_SECONDS):
                    await self.renew()
            except (RedisError, OSError) as fault:
                # Running calls continue. New calls are refused while Redis is unreachable.
                log.warning("slots_not_renewed", slots=len(self._leases), fault=type(fault).__name__)

    async def renew(self) -> None:
        for lease_id, key in list(self._leases.items()):
            if lease_id in self._leases:
                await self._renew(keys=[self._name(key)], args=[lease_id, self._slot_seconds])
                if lease_id not in self._leases:
                    # Given back during the renewal, which Redis may have processed last.
                    await self._redis.zrem(self._name(key), lease_id)

    def _name(self, key: str) -> str:
        return f"{_PREFIX}:places:{key}"
