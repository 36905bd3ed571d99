"""Concurrency that several servers share: places on Redis, which fall free when their holder stops renewing them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Protocol

import anyio
import structlog
from limits.errors import StorageError
from redis.asyncio import Redis
from redis.exceptions import RedisError

PLACE_SECONDS = 15
"""A server that was killed holds its places for this long at most."""
RENEW_SECONDS = 4.0

log = structlog.get_logger()

# Redis decides by its own clock (TIME), so that servers whose clocks differ, or jump, see the same places.
_NOW = "local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000); "
_TAKE = (
    _NOW
    + """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[3] * 1000, ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3] * 2)
return 1
"""
)
_RENEW = (
    _NOW
    + """
redis.call('ZADD', KEYS[1], now + ARGV[2] * 1000, ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2] * 2)
return 1
"""
)


class _Script(Protocol):
    def __call__(self, keys: list[str], args: list[str | int]) -> Awaitable[object]: ...


class SharedSlots:
    """A sorted set for each key: lease ids by the moment at which they fall free."""

    RETRY_SECONDS = 1.0

    def __init__(self, redis: Redis, *, prefix: str, place_seconds: int = PLACE_SECONDS) -> None:
        self._redis = redis
        self._prefix = prefix
        self._place_seconds = place_seconds
        self._take: _Script = redis.register_script(_TAKE)
        self._renew: _Script = redis.register_script(_RENEW)
        self._held: dict[str, str] = {}
        """Lease id to key: what `keep` renews."""

    async def take(self, key: str, lease_id: str, *, limit: int) -> float:
        """Raises: StorageError, as the library's counters do."""
        with _told_as_storage_error():
            taken = await self._take(keys=[self._name(key)], args=[lease_id, limit, self._place_seconds])
        if not taken:
            return self.RETRY_SECONDS
        self._held[lease_id] = key
        return 0.0

    async def give_back(self, key: str, lease_id: str) -> None:
        """Raises: StorageError."""
        # Before anything is awaited, so that it is not renewed after it was given back.
        self._held.pop(lease_id, None)
        with _told_as_storage_error():
            await self._redis.zrem(self._name(key), lease_id)

    async def keep(self) -> None:
        """Says for ever that this server lives and which places it holds."""
        while True:
            await anyio.sleep(RENEW_SECONDS)
            try:
                with anyio.fail_after(RENEW_SECONDS):
                    await self.renew()
            except (RedisError, OSError) as fault:
                # The calls that run now go on; nobody is admitted anywhere while Redis is away.
                log.warning("places_not_renewed", held=len(self._held), fault=type(fault).__name__)

    async def renew(self) -> None:
        for lease_id, key in list(self._held.items()):
            if lease_id in self._held:
                await self._renew(keys=[self._name(key)], args=[lease_id, self._place_seconds])
                if lease_id not in self._held:
                    # Given back while the renewal was on its way, which may have come second.
                    await self._redis.zrem(self._name(key), lease_id)

    def _name(self, key: str) -> str:
        return f"{self._prefix}:places:{key}"


@contextmanager
def _told_as_storage_error() -> Iterator[None]:
    """Whoever asks knows one library's errors, not two."""
    try:
        yield
    except RedisError as fault:
        raise StorageError(fault) from fault
