"""A program that waits for its input is there when the next call comes, and is never left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from browser_shell.process import spawn
from browser_shell.process.conversation import Bounds
from browser_shell.process.spares import SpareCommands

BOUNDS = Bounds(max_output_bytes=1000, one_line=False)


def echo(_: str) -> spawn.Command:
    return spawn.Command(argv=("/bin/cat",), env={}, cwd=Path("/"), bounds=BOUNDS, account=None)


def broken(_: str) -> spawn.Command:
    return spawn.Command(
        argv=("/nonexistent",),
        env={},
        cwd=Path("/"),
        bounds=BOUNDS,
        account=None,
    )


@pytest.fixture
def busy() -> set[str]:
    return set()


@asynccontextmanager
async def running(spares: SpareCommands) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(spares.run)
        await anyio.wait_all_tasks_blocked()
        yield
        tasks.cancel_scope.cancel()


async def taken(spares: SpareCommands, name: str) -> spawn.StartedProcess:
    begun = await spares.take(name)
    assert begun is not None
    return begun


async def test_a_wished_program_waits_and_answers_what_it_is_given(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        await anyio.wait_all_tasks_blocked()
        finished = await spawn.finish(await taken(spares, "a"), b"hello", seconds=5)
    assert (finished.exit_code, finished.stdout) == (0, b"hello")


async def test_a_wish_is_granted_after_what_its_maker_does_at_once(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        assert await spares.take("a") is None
        await anyio.wait_all_tasks_blocked()
        await spawn.discard(await taken(spares, "a"))


async def test_nothing_waits_unless_it_was_wished_for(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        await anyio.wait_all_tasks_blocked()
        begun = await taken(spares, "a")
        assert await spares.take("b") is None
        await spawn.discard(begun)


@pytest.mark.promise("process:no-orphan")
async def test_dropped_and_left_over_programs_are_ended(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        for name in ("dropped", "left"):
            spares.start(name)
        processes = [waiting.begun.process for waiting in spares._waiting.values()]
        await spares.drop("dropped")
        spares.wish("forgotten")
        await spares.drop("forgotten")
        await anyio.wait_all_tasks_blocked()
        assert await spares.take("forgotten") is None
    assert [process.returncode for process in processes] == [-9, -9]


async def test_one_that_nobody_comes_for_is_ended_and_another_may_wait(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__, idle_seconds=0.2)
    async with running(spares):
        spares.start("a")
        (process,) = (waiting.begun.process for waiting in spares._waiting.values())
        with anyio.fail_after(5):
            while process.returncode is None:  # noqa: ASYNC110  nobody tells
                await anyio.sleep(0.01)
        assert await spares.take("a") is None
        spares.start("a")
        finished = await spawn.finish(await taken(spares, "a"), b"hello", seconds=5)
    assert finished.stdout == b"hello"


async def test_one_that_has_just_begun_to_wait_is_kept(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__, idle_seconds=60)
    async with running(spares):
        for name in ("old", "new"):
            spares.start(name)
        spares._waiting["old"] = replace(spares._waiting["old"], since=anyio.current_time() - 61)
        await spares._drop_idle()
        assert await spares.take("old") is None
        await spawn.discard(await taken(spares, "new"))


@pytest.mark.promise("process:no-orphan")
async def test_none_is_started_when_nobody_would_end_it(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    spares.start("early")
    async with running(spares):
        pass
    spares.start("late")
    spares.wish("late")
    await anyio.wait_all_tasks_blocked()
    assert (await spares.take("early"), await spares.take("late")) == (None, None)


async def test_none_starts_beside_a_running_call(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    busy.add("a")
    async with running(spares):
        spares.wish("a")
        spares.wish("b")
        await anyio.wait_all_tasks_blocked()
        await spawn.discard(await taken(spares, "b"))
        assert await spares.take("a") is None


async def test_a_program_that_ended_while_it_waited_is_not_handed_out(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.start("a")
        await spawn.discard(spares._waiting["a"].begun)
        assert await spares.take("a") is None


async def test_a_program_that_cannot_start_is_no_fault(busy: set[str]) -> None:
    spares = SpareCommands(broken, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        await anyio.wait_all_tasks_blocked()
        assert await spares.take("a") is None


async def test_whoever_cannot_wait_for_a_wish_has_one_started_once(busy: set[str]) -> None:
    made: list[str] = []

    def counted(name: str) -> spawn.Command:
        made.append(name)
        return echo(name)

    spares = SpareCommands(counted, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        spares.start("a")
        spares.start("a")
        spares.wish("a")
        await anyio.wait_all_tasks_blocked()
    assert made == ["a"]
