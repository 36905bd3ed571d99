"""Short-lived programs: bounded output, a deadline, and no process left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from browser_shell.core.errors import ExecutionTimedOut, SandboxUnavailable
from browser_shell.process import spawn
from support.processes import alive, open_files

LIMIT = 300_000


def python(text: str, *arguments: str) -> spawn.Command:
    return spawn.Command(
        argv=(sys.executable, "-I", "-c", text, *arguments),
        env={},
        cwd=Path("/"),
        max_output_bytes=LIMIT,
        account=None,
    )


async def is_gone(pid: int) -> bool:
    with anyio.move_on_after(5):
        while alive(pid):  # noqa: ASYNC110  there is no event to wait for
            await anyio.sleep(0.01)
        return True
    return False


async def written_pid(file: Path) -> int:
    with anyio.fail_after(10):
        while not (file.exists() and file.read_text().endswith("\n")):  # noqa: ASYNC110  written by another process
            await anyio.sleep(0.01)
    return int(file.read_text())


async def test_both_streams_and_the_exit_code_are_returned() -> None:
    output = await spawn.run(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"), seconds=20)
    assert output == spawn.ProcessOutput(exit_code=7, stdout=b"out\n", stderr=b"err\n")


async def test_output_above_the_bound_is_read_and_discarded() -> None:
    text = "import sys; [s.write('x' * 1_000_000) for s in (sys.stdout, sys.stderr)]"
    output = await spawn.run(python(text), seconds=20)
    assert (output.exit_code, len(output.stdout), len(output.stderr)) == (0, LIMIT, LIMIT)


async def test_standard_input_is_empty() -> None:
    output = await spawn.run(python("import sys; print(repr(sys.stdin.read()))"), seconds=20)
    assert output.stdout == b"''\n"


async def test_a_program_that_does_not_exist_is_an_error() -> None:
    command = spawn.Command(argv=("/nonexistent",), env={}, cwd=Path("/"), max_output_bytes=1, account=None)
    with pytest.raises(SandboxUnavailable, match="cannot start nonexistent"):
        await spawn.run(command, seconds=20)


@pytest.mark.parametrize(
    "sleep",
    [
        "time.sleep(60)",
        # Closes its streams at once and keeps running.
        "[os.close(n) for n in (0, 1, 2)]; time.sleep(60)",
    ],
)
async def test_a_program_is_killed_at_its_deadline(tmp_path: Path, sleep: str) -> None:
    file = tmp_path / "pid"
    text = f"import os, sys, time; open(sys.argv[1], 'w').write(f'{{os.getpid()}}\\n'); {sleep}"
    with pytest.raises(ExecutionTimedOut, match="after 2 s"):
        await spawn.run(python(text, str(file)), seconds=2)
    assert await is_gone(await written_pid(file))


@pytest.mark.promise("process:no-orphan")
async def test_a_cancelled_run_leaves_no_process_of_its_group(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '60']).pid\n"
        "open(sys.argv[1], 'w').write(f'{child}\\n')\n"
        "time.sleep(60)"
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: spawn.run(python(text, str(file)), seconds=30))
        child = await written_pid(file)
        tasks.cancel_scope.cancel()
    assert await is_gone(child)


@pytest.mark.promise("process:no-orphan")
async def test_a_run_that_is_cancelled_during_its_start_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_process = anyio.open_process
    started = anyio.Event()

    async def open_slowly(*args: Any, **options: Any) -> Process:
        process = await open_process(*args, **options)
        started.set()
        await anyio.sleep(0.2)
        return process

    monkeypatch.setattr(anyio, "open_process", open_slowly)
    file = tmp_path / "pid"
    text = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}\\n'); time.sleep(60)"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: spawn.run(python(text, str(file)), seconds=30))
        await started.wait()
        pid = await written_pid(file)
        tasks.cancel_scope.cancel()
    assert await is_gone(pid)


async def test_runs_leave_no_open_file() -> None:
    await spawn.run(python("pass"), seconds=20)
    before = open_files()
    for _ in range(3):
        await spawn.run(python("pass"), seconds=20)
        with pytest.raises(ExecutionTimedOut):
            await spawn.run(python("import time; time.sleep(60)"), seconds=0.3)
    assert open_files() <= before
