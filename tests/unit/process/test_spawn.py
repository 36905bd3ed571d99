"""Short programs: all of their output and none too much, all of their input, and an end for each of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from browser_shell.core.errors import ExecutionTimedOut, SandboxUnavailable
from browser_shell.process import spawn
from browser_shell.process.conversation import Finished
from support.processes import alive

LIMIT = 300_000


def python(text: str) -> spawn.Command:
    return spawn.Command(
        argv=(sys.executable, "-I", "-c", text), env={}, cwd=Path("/"), max_output_bytes=LIMIT, account=None
    )


async def run(text: str, stdin: bytes = b"", *, seconds: float = 20) -> Finished:
    return await spawn.finish(await spawn.begin(python(text)), stdin, seconds=seconds)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def is_gone(pid: int) -> bool:
    with anyio.move_on_after(5):
        while alive(pid):  # noqa: ASYNC110  there is no event to wait for
            await anyio.sleep(0.01)
        return True
    return False


async def test_both_streams_and_the_exit_code_arrive() -> None:
    finished = await run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert finished == Finished(exit_code=7, stdout=b"out\n", stderr=b"err\n", truncated=False)


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 65_536, LIMIT])
async def test_input_of_any_size_arrives_while_output_is_read(size: int) -> None:
    text = os.urandom(size)
    finished = await run("import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer, 100)", text)
    assert (finished.exit_code, finished.stdout == text, finished.truncated) == (0, True, False)


async def test_a_flood_is_read_to_its_end_and_not_kept() -> None:
    finished = await run("import sys; [s.write('x' * 1_000_000) for s in (sys.stdout, sys.stderr)]")
    assert (finished.exit_code, len(finished.stdout), len(finished.stderr)) == (0, LIMIT, LIMIT)
    assert finished.truncated


async def test_a_program_that_ends_without_reading_its_input_says_why() -> None:
    finished = await run("import sys; sys.exit('no input wanted')", b"x" * 1_000_000)
    assert (finished.exit_code, finished.stderr) == (1, b"no input wanted\n")


async def test_one_that_does_not_exist_is_an_error() -> None:
    command = spawn.Command(argv=("/nonexistent",), env={}, cwd=Path("/"), max_output_bytes=1, account=None)
    with pytest.raises(SandboxUnavailable, match="cannot start nonexistent"):
        await spawn.begin(command)


@pytest.mark.parametrize(
    "text",
    [
        "import time; time.sleep(60)",
        # Its streams end at once, and it does not.
        "import os, time; [os.close(n) for n in (0, 1, 2)]; time.sleep(60)",
    ],
)
async def test_one_that_does_not_end_in_time_is_ended(text: str) -> None:
    begun = await spawn.begin(python(text))
    with pytest.raises(ExecutionTimedOut, match="after 1 s"):
        await spawn.finish(begun, b"", seconds=1)
    assert await is_gone(begun.process.pid)


async def test_one_that_nobody_waits_for_is_ended_with_its_children() -> None:
    text = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    begun = await spawn.begin(python(text))
    assert begun.process.stdout is not None
    child = int(begun.process.stdout.readline())
    with anyio.move_on_after(0.3):
        await spawn.finish(begun, b"", seconds=30)
    assert await is_gone(child)
    assert await is_gone(begun.process.pid)


async def test_no_pipe_is_left_open() -> None:
    await run("")
    before = open_files()
    for _ in range(5):
        await run("print(1)")
        await spawn.discard(await spawn.begin(python("input()")))
        begun = await spawn.begin(python("import time; time.sleep(60)"))
        with anyio.move_on_after(0.2):
            await spawn.finish(begun, b"", seconds=30)
        assert await is_gone(begun.process.pid)
        del begun
    await anyio.sleep(0.2)
    assert open_files() <= before + 1
