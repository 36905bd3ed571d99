"""A program that waits for its input is there when the next call comes, and is never left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from browser_shell.process import spawn
from browser_shell.process.spares import SpareCommands


def echo(_: str) -> spawn.Command:
    return spawn.Command(argv=("/bin/cat",), env={}, cwd=Path("/"), max_output_bytes=1000, account=None)


def broken(_: str) -> spawn.Command:
    return spawn.Command(argv=("/nonexistent",), env={}, cwd=Path("/"), max_output_bytes=1000, account=None)


@pytest.fixture
def busy() -> set[str]:
    return set()


@asynccontextmanager
async def running(spares: SpareCommands) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(spares.run)
        yield
        tasks.cancel_scope.cancel()


async def waiting(spares: SpareCommands, *names: str) -> None:
    with anyio.fail_after(5):
        while not set(names) <= spares._waiting.keys():  # noqa: ASYNC110  there is no event to wait for
            await anyio.sleep(0.01)


async def taken(spares: SpareCommands, name: str) -> spawn.Begun:
    with anyio.fail_after(5):
        while True:
            begun = await spares.take(name)
            if begun is not None:
                return begun
            await anyio.sleep(0.01)
            spares.wish(name)


async def test_a_wished_program_waits_and_answers_what_it_is_given(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        begun = await taken(spares, "a")
        finished = await spawn.finish(begun, b"hello", seconds=5)
    assert (finished.exit_code, finished.stdout) == (0, b"hello")


async def test_nothing_waits_unless_it_was_wished_for(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        begun = await taken(spares, "a")
        assert await spares.take("b") is None
        await spawn.discard(begun)


@pytest.mark.promise("process:no-orphan")
async def test_dropped_and_left_over_programs_are_ended(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        for name in ("dropped", "left"):
            spares.wish(name)
        await waiting(spares, "dropped", "left")
        processes = [begun.process for begun in spares._waiting.values()]
        await spares.drop("dropped")
    assert [process.returncode for process in processes] == [-9, -9]


async def test_none_starts_beside_a_running_call(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    busy.add("a")
    async with running(spares):
        spares.wish("a")
        spares.wish("b")
        await spawn.discard(await taken(spares, "b"))
        assert await spares.take("a") is None


async def test_a_program_that_ended_while_it_waited_is_not_handed_out(busy: set[str]) -> None:
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        await waiting(spares, "a")
        await spawn.discard(spares._waiting["a"])
        assert await spares.take("a") is None


async def test_a_program_that_cannot_start_is_no_fault(busy: set[str]) -> None:
    spares = SpareCommands(broken, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("a")
        await anyio.sleep(0.1)
        assert await spares.take("a") is None


async def test_one_in_a_hurry_starts_at_once_and_is_waited_for(busy: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.process.spares._QUIET_SECONDS", 3600)
    spares = SpareCommands(echo, in_use=busy.__contains__)
    async with running(spares):
        spares.wish("calm")
        spares.hasten("a")
        with anyio.fail_after(5):
            while "a" not in spares._starting | spares._waiting:  # noqa: ASYNC110  there is no event to wait for
                await anyio.sleep(0.001)
        begun = await spares.take("a")
        assert begun is not None
        assert await spares.take("calm") is None
        await spawn.discard(begun)


async def test_a_second_hurry_starts_no_second_program(busy: set[str]) -> None:
    made: list[str] = []

    def counted(name: str) -> spawn.Command:
        made.append(name)
        return echo(name)

    spares = SpareCommands(counted, in_use=busy.__contains__)
    async with running(spares):
        spares.hasten("a")
        await waiting(spares, "a")
        spares.hasten("a")
        await anyio.sleep(0.1)
    assert made == ["a"]
