"""Two gates on one real Redis share their limits. Calls are refused while Redis is slow or unreachable."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from redis.asyncio import Redis

from browser_shell.core.calls import CommandResult
from browser_shell.core.errors import CallRefused, ConfigurationInvalid, LimitsUnavailable
from browser_shell.core.ports import NewId
from browser_shell.limits import redis_backend
from browser_shell.limits.gate import LimitsGate, open_gate
from browser_shell.limits.redis_backend import RedisSlots
from support.fakes import FakeClock, a_call
from support.gates import FAILED, OK, ids, rules
from support.redis_server import PASSWORD, RedisServer


@asynccontextmanager
async def two_gates(redis: RedisServer, **limits: object) -> AsyncIterator[tuple[LimitsGate, LimitsGate]]:
    async with AsyncExitStack() as stack:
        gates = [
            await stack.enter_async_context(
                open_gate(rules(**limits), redis_url=url, clock=FakeClock(), new_id=_ids(name))
            )
            for url, name in ((redis.url, "a"), (redis.socket_url, "b"))
        ]
        redis.ask("FLUSHALL")
        yield gates[0], gates[1]


def _ids(name: str) -> NewId:
    number = ids()
    return lambda: f"{name}-{number()}"


async def outcome(gate: LimitsGate, *argv: str, result: CommandResult | None = OK) -> str:
    """Run one call. Return the rule that refused it, '' if it was admitted."""
    try:
        lease = await gate.admit(a_call(*argv))
    except CallRefused as error:
        return error.rule_id
    await lease.settle(result)
    return ""


@pytest.mark.promise("limits:shared")
async def test_rate_and_quota_are_shared(redis: RedisServer) -> None:
    async with two_gates(redis, calls_per_minute=4) as (one, other):
        assert [await outcome(gate) for gate in (one, other, one, other)] == [""] * 4
        assert [await outcome(gate) for gate in (one, other)] == ["limits.rate"] * 2
    async with two_gates(redis, calls_per_day=2) as (one, other):
        assert [await outcome(gate) for gate in (one, other)] == [""] * 2
        assert [await outcome(gate) for gate in (one, other)] == ["limits.quota"] * 2


async def test_slots_are_shared(redis: RedisServer) -> None:
    async with two_gates(redis, concurrent_calls=2) as (one, other):
        leases = [await one.admit(a_call()), await other.admit(a_call())]
        assert [await outcome(gate) for gate in (one, other)] == ["limits.concurrency"] * 2
        await leases[0].settle(OK)
        assert await outcome(other) == ""
        await leases[1].settle(None)
        assert redis.ask("KEYS", "*places*") == []


async def test_budgets_are_shared(redis: RedisServer) -> None:
    async with two_gates(redis, budget={"max_retries": 1, "elapsed_seconds": 5, "window_seconds": 60}) as (one, other):
        assert [await outcome(gate, "click", result=FAILED) for gate in (one, other)] == ["", ""]
        assert await outcome(one, "click") == "limits.budget.retries"
        lease = await one.admit(a_call())
        async with lease.running():
            assert isinstance(one.clock, FakeClock)
            one.clock.advance(6)
        await lease.settle(OK)
        assert await outcome(other) == "limits.budget.elapsed"
        with pytest.raises(CallRefused) as caught:
            await other.admit(a_call())
        assert 50 <= caught.value.retry_after_seconds <= 60  # type: ignore[attr-defined]


@pytest.mark.promise("limits:no-clock-opens-the-gate")
@pytest.mark.parametrize("jump", [-400 * 86_400, -61, 61, 86_401, 400 * 86_400])
async def test_a_jump_of_a_servers_clock_does_not_change_the_limits(
    redis: RedisServer, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"calls_per_minute": 3, "concurrent_calls": 1, "budget": {"max_retries": 0, "window_seconds": 60}}
    async with two_gates(redis, **limits) as (one, other):
        lease = await one.admit(a_call())
        real = time.time
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda: real() + jump)
            assert await outcome(one) == "limits.concurrency"
            assert await outcome(other) == "limits.concurrency"
            await lease.settle(OK)
            assert await outcome(one, "click", result=FAILED) == ""
            assert await outcome(one, "click") == "limits.budget.retries"
            assert await outcome(other) == ""
            assert await outcome(one) == "limits.rate"
        assert await outcome(one) == "limits.rate"


@pytest.mark.promise("limits:killed-server-frees-its-slots")
async def test_the_slot_of_a_killed_server_expires(redis: RedisServer) -> None:
    redis.ask("FLUSHALL")
    async with Redis.from_url(redis.url) as client:
        dead, alive = (RedisSlots(client, slot_seconds=1) for _ in range(2))
        assert await dead.take("k", "dead", limit=2)
        assert await alive.take("k", "first", limit=2)
        assert not await alive.take("k", "second", limit=2)
        with anyio.fail_after(5):
            while not await alive.take("k", "second", limit=2):
                await alive.renew()
                await anyio.sleep(0.05)
        assert not await alive.take("k", "third", limit=2)


async def test_a_slot_in_use_is_renewed(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_backend, "RENEW_SECONDS", 0.2)
    redis.ask("FLUSHALL")
    async with Redis.from_url(redis.url) as client, anyio.create_task_group() as tasks:
        holder, other = (RedisSlots(client, slot_seconds=1) for _ in range(2))
        tasks.start_soon(holder.keep_renewing)
        assert await holder.take("k", "held", limit=1)
        started = time.monotonic()
        while time.monotonic() - started < 2.5:
            assert not await other.take("k", "other", limit=1)
            await anyio.sleep(0.1)
        # After a restart without persistence, the next renewal creates the slot again.
        redis.ask("FLUSHALL")
        with anyio.fail_after(5):
            while not await client.zscore("browser-shell:places:k", "held"):  # noqa: ASYNC110  Redis sends no event
                await anyio.sleep(0.05)
        await holder.give_back("k", "held")
        assert await other.take("k", "other", limit=1)
        tasks.cancel_scope.cancel()


@pytest.mark.promise("limits:no-count-no-run")
async def test_calls_are_refused_while_redis_is_down(redis: RedisServer) -> None:
    async with two_gates(redis, concurrent_calls=2) as (one, other):
        assert await outcome(one) == ""
        lease = await one.admit(a_call())
        redis.stop()
        started = time.monotonic()
        assert [await outcome(gate) for gate in (one, other)] == ["limits.unavailable"] * 2
        await lease.settle(OK)
        assert time.monotonic() - started < 10
        redis.start()
        assert [await outcome(gate) for gate in (one, other)] == ["", ""]


@pytest.mark.promise("limits:no-count-no-run")
async def test_calls_are_refused_in_bounded_time_while_redis_hangs(redis: RedisServer) -> None:
    async with two_gates(redis) as (one, other):
        assert await outcome(one) == ""
        lease = await one.admit(a_call())
        with redis.hanging():
            for gate in (one, other):
                started = time.monotonic()
                assert await outcome(gate) == "limits.unavailable"
                assert time.monotonic() - started < 5
            started = time.monotonic()
            await lease.settle(OK)
            assert time.monotonic() - started < 5
        assert await outcome(other) == ""


@dataclass
class SlowRelay:
    """A relay to Redis that delays each reply by `seconds`."""

    url: str
    seconds: float


@asynccontextmanager
async def slow_redis(redis: RedisServer, seconds: float = 0.0) -> AsyncIterator[SlowRelay]:
    """Relay to the real Redis with a delay."""
    relay_to_redis = SlowRelay("", seconds)

    async def relay(client: SocketStream) -> None:
        server = await anyio.connect_tcp("127.0.0.1", redis.port)
        async with client, server, anyio.create_task_group() as tasks:
            tasks.start_soon(pump, client, server, SlowRelay("", 0))
            await pump(server, client, relay_to_redis)
            tasks.cancel_scope.cancel()

    async def pump(source: SocketStream, target: SocketStream, delay: SlowRelay) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in source:
                await anyio.sleep(delay.seconds)
                await target.send(chunk)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, relay)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610  no Django here
        relay_to_redis.url = redis.url.replace(str(redis.port), str(port))
        yield relay_to_redis
        tasks.cancel_scope.cancel()


@pytest.mark.promise("limits:no-count-no-run")
async def test_a_slow_redis_refuses_calls_instead_of_delaying_them(redis: RedisServer) -> None:
    redis.ask("FLUSHALL")
    async with (
        slow_redis(redis, 0.6) as relay_to_redis,
        open_gate(rules(), redis_url=relay_to_redis.url, clock=FakeClock(), new_id=ids()) as gate,
    ):
        assert await outcome(gate) == "limits.unavailable"
        relay_to_redis.seconds = 0
        assert await outcome(gate) == ""
        lease = await gate.admit(a_call("click"))
        async with lease.running():
            assert isinstance(gate.clock, FakeClock)
            gate.clock.advance(1)
        relay_to_redis.seconds = 0.95
        started = time.monotonic()
        await lease.settle(FAILED)
        assert time.monotonic() - started < 5


async def test_a_slot_given_back_during_its_renewal_stays_free(redis: RedisServer) -> None:
    redis.ask("FLUSHALL")
    async with slow_redis(redis) as relay_to_redis, Redis.from_url(relay_to_redis.url) as client:
        slots = RedisSlots(client)
        await slots.take("k", "first", limit=2)
        await slots.take("k", "second", limit=2)
        relay_to_redis.seconds = 0.2
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slots.renew)
            await anyio.sleep(0.1)
            tasks.start_soon(slots.give_back, "k", "first")
            tasks.start_soon(slots.give_back, "k", "second")
        assert redis.ask("ZCARD", "browser-shell:places:k") == 0


async def test_slots_are_renewed_after_redis_returns(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_backend, "RENEW_SECONDS", 0.1)
    async with Redis.from_url(redis.url) as client, anyio.create_task_group() as tasks:
        slots = RedisSlots(client)
        await slots.take("k", "held", limit=1)
        tasks.start_soon(slots.keep_renewing)
        redis.stop()
        await anyio.sleep(0.5)
        redis.start()
        with anyio.fail_after(5):
            while redis.ask("ZSCORE", "browser-shell:places:k", "held") is None:  # noqa: ASYNC110  Redis sends no event
                await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()


async def test_a_wrong_password_refuses_calls_and_is_not_printed(
    redis: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = redis.url.replace(PASSWORD, "wr0ng-pass")
    async with open_gate(rules(), redis_url=url, clock=FakeClock(), new_id=ids()) as gate:
        with pytest.raises(LimitsUnavailable) as caught:
            await gate.admit(a_call())
        assert "wr0ng-pass" not in str(caught.value) + repr(gate)
    printed = capsys.readouterr()
    assert "wr0ng-pass" not in printed.out + printed.err


async def test_an_invalid_url_prevents_the_start_and_is_not_printed() -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        async with open_gate(rules(), redis_url="redis://:s3cret@h:port/x", clock=FakeClock(), new_id=ids()):
            pass
    assert "s3cret" not in str(caught.value)


async def test_a_call_cancelled_during_a_request_to_redis_leaves_no_slot(redis: RedisServer) -> None:
    async with two_gates(redis, concurrent_calls=1) as (one, other):
        for delay in range(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outcome, one)
                await anyio.sleep(delay * 0.0002)
                tasks.cancel_scope.cancel()
        assert not redis.ask("KEYS", "*places*")
        assert await outcome(other) == ""
