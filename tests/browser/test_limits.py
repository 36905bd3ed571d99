"""Rate, quota, concurrency and budgets with a real client, on one server and on two that share a Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anyio
import pytest

from support.limited_callers import KEY_SETTINGS, LIMITS, Answer, Caller, calling
from support.live_folders import content, files_below
from support.pages import Site
from support.redis_server import PASSWORD, RedisServer
from support.server import Server, running_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=["memory", "redis"])
def servers(request: pytest.FixtureRequest) -> Iterator[list[Server]]:
    """Start one server with local counters, or two on one Redis."""
    if request.param == "memory":
        with running_server({"limits": LIMITS}, env=KEY_SETTINGS) as server:
            yield [server]
        return
    redis: RedisServer = request.getfixturevalue("redis")
    env = {**KEY_SETTINGS, "BROWSER_SHELL_LIMITS_REDIS": redis.url}
    with running_server({"limits": LIMITS}, env=env) as one, running_server({"limits": LIMITS}, env=env) as other:
        yield [one, other]


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


async def spread(servers: list[Server], subject: str, count: int, *argv: str) -> list[Answer]:
    """Make calls in sequence, to each server in turn."""
    answers = []
    for number in range(count):
        async with calling(address(servers[number % len(servers)]), subject) as caller:
            answers.append(await caller.run(*argv))
    return answers


def assert_recorded(servers: list[Server], subject: str, rule: str) -> None:
    lines = [
        record
        for server in servers
        for path in server.state.glob("*/audit.jsonl")
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if record.get("subject") == subject and record.get("rule_id") == rule
    ]
    assert {"POLICY_BLOCKED", "TOOL_FINISHED"} <= {line["kind"] for line in lines}


@pytest.mark.promise("limits:rate")
async def test_calls_above_the_rate_are_refused(servers: list[Server]) -> None:
    *passed, refused = await spread(servers, "rate", 5, "close")
    assert [answer.exit_code for answer in passed] == [0] * 4
    assert (refused.exit_code, refused.name, refused.rule) == (75, "RATE_LIMITED", "limits.rate")
    assert 0 < refused.meta["retry_after"] <= 61
    assert_recorded(servers, "rate", "limits.rate")


@pytest.mark.promise("limits:quota")
async def test_calls_above_the_quota_are_refused(servers: list[Server]) -> None:
    *passed, refused = await spread(servers, "quota", 5, "close")
    assert [answer.exit_code for answer in passed] == [0] * 4
    assert (refused.exit_code, refused.name, refused.rule) == (75, "RATE_LIMITED", "limits.quota")
    assert 80_000 < refused.meta["retry_after"] <= 86_401
    assert_recorded(servers, "quota", "limits.quota")


@pytest.mark.promise("limits:budget-retries")
async def test_a_call_that_fails_repeatedly_is_refused(servers: list[Server]) -> None:
    *failed, refused = await spread(servers, "stubborn", 5, "click")
    assert [answer.exit_code for answer in failed] == [2] * 4
    assert (refused.exit_code, refused.name, refused.rule) == (75, "BUDGET_EXCEEDED", "limits.budget.retries")
    assert 3_000 < refused.meta["retry_after"] <= 3_600
    (other,) = await spread(servers, "stubborn", 1, "close")
    assert other.exit_code == 0
    assert_recorded(servers, "stubborn", "limits.budget.retries")


@pytest.mark.promise("limits:budget-elapsed")
async def test_a_task_that_used_up_its_time_is_refused(servers: list[Server]) -> None:
    answers = await spread(servers, "slow", 1, "open", "about:blank")
    assert answers[0].exit_code == 0
    # The session is new on the second server, where the first call must be `open` too.
    answers = await spread(servers[::-1], "slow", 1, "open", "about:blank")
    stopped = (await spread(servers, "slow", 1, "wait", "25000"))[0]
    assert (stopped.exit_code, stopped.name, stopped.rule) == (75, "BUDGET_EXCEEDED", "limits.budget.elapsed")
    refused = await spread(servers, "slow", 2, "snapshot")
    assert {(answer.name, answer.rule) for answer in refused} == {("BUDGET_EXCEEDED", "limits.budget.elapsed")}
    assert all(500 < answer.meta["retry_after"] <= 600 for answer in refused)
    assert_recorded(servers, "slow", "limits.budget.elapsed")


@pytest.mark.promise("limits:concurrency")
async def test_concurrent_calls_are_limited(servers: list[Server]) -> None:
    for server in servers:
        async with calling(address(server), "busy") as caller:
            for session_id in ("a", "b"):
                assert (await caller.run("open", "about:blank", session_id=session_id)).exit_code == 0
    answers: list[Answer] = []

    async def wait(caller: Caller, session_id: str) -> None:
        answers.append(await caller.run("wait", "3000", session_id=session_id))

    async with calling(address(servers[0]), "busy") as one, calling(address(servers[-1]), "busy") as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, one, "a")
            tasks.start_soon(wait, other, "b")
            await anyio.sleep(1)
            refused = [await caller.run("close", session_id="c") for caller in (one, other)]
        after = [await caller.run("close", session_id="c") for caller in (one, other)]
    assert {(answer.exit_code, answer.rule) for answer in refused} == {(75, "limits.concurrency")}
    assert [answer.exit_code for answer in [*answers, *after]] == [0] * 4
    assert_recorded(servers, "busy", "limits.concurrency")


def test_the_password_of_redis_is_not_written_anywhere(servers: list[Server]) -> None:
    for server in servers:
        assert PASSWORD not in "".join(server.lines)
        for path in files_below(server.state):
            assert PASSWORD.encode() not in content(path)


@pytest.mark.promise("limits:no-count-no-run")
async def test_a_server_refuses_calls_while_its_redis_is_down(redis: RedisServer) -> None:
    env = {**KEY_SETTINGS, "BROWSER_SHELL_LIMITS_REDIS": redis.url}
    with running_server({}, env=env) as server:
        redis.stop()
        (refused,) = await spread([server], "ann", 1, "close")
        assert (refused.exit_code, refused.name, refused.rule) == (75, "LIMITS_UNAVAILABLE", "limits.unavailable")
        assert refused.meta["retry_after"] > 0
        redis.start()
        (passed,) = await spread([server], "ann", 1, "close")
        assert passed.exit_code == 0
        assert PASSWORD not in "".join(server.lines)
        assert_recorded([server], "ann", "limits.unavailable")


def test_a_blocked_call_works_on_the_next_page(site: Site) -> None:
    policy = {
        "open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]},
        "limits": {"budget": {"max_retries": 1}},
    }
    first, second = site.watch("<button>Back</button>"), site.watch("<button id=next onclick='report(1)'>Next</button>")
    link = site.watch(f"<a id=link href='{second.url}'>Second page</a>")
    with running_server(policy) as server:
        session = server.session("s")
        session.ok("open", first.url)
        errors = [session.run("click", "#next", timeout=5).meta["name"] for _ in range(3)]
        assert errors[2] == "BUDGET_EXCEEDED" not in errors[:2]
        session.ok("open", link.url)
        assert [session.run("click", "#next", timeout=5).meta["name"] for _ in range(2)] == errors[:2]
        # A click that leads to another page is a navigation, too.
        outcome = session.run("click", "#link", then=[["click", "#next"]])
        assert outcome.exit_code == 0, outcome.stderr
    second.wait_for(1)
