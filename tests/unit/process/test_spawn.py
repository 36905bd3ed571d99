"""Short programs: all of their output and none too much, all of their input, and an end for each of them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from browser_shell.core.errors import ExecutionTimedOut, SandboxUnavailable
from browser_shell.process import spawn
from browser_shell.process.conversation import Bounds, ProcessOutput
from support.processes import alive, open_files

LIMIT = 300_000


def python(text: str, *, one_line: bool = False) -> spawn.Command:
    return spawn.Command(
        argv=(sys.executable, "-I", "-c", text),
        env={},
        cwd=Path("/"),
        bounds=Bounds(max_output_bytes=LIMIT, one_line=one_line),
        account=None,
    )


async def run(text: str, stdin: bytes = b"", *, seconds: float = 20) -> ProcessOutput:
    return await spawn.finish(spawn.begin(python(text)), stdin, seconds=seconds)


async def is_gone(pid: int) -> bool:
    with anyio.move_on_after(5):
        while alive(pid):  # noqa: ASYNC110  there is no event to wait for
            await anyio.sleep(0.01)
        return True
    return False


async def test_both_streams_and_the_exit_code_arrive() -> None:
    finished = await run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert finished == ProcessOutput(exit_code=7, stdout=b"out\n", stderr=b"err\n", truncated=False)


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
    command = spawn.Command(
        argv=("/nonexistent",), env={}, cwd=Path("/"), bounds=Bounds(max_output_bytes=1, one_line=False), account=None
    )
    with pytest.raises(SandboxUnavailable, match="cannot start nonexistent"):
        spawn.begin(command)


@pytest.mark.parametrize(
    "text",
    [
        "import time; time.sleep(60)",
        # Its streams end at once, and it does not.
        "import os, time; [os.close(n) for n in (0, 1, 2)]; time.sleep(60)",
    ],
)
async def test_one_that_does_not_end_in_time_is_ended(text: str) -> None:
    begun = spawn.begin(python(text))
    with pytest.raises(ExecutionTimedOut, match="after 1 s"):
        await spawn.finish(begun, b"", seconds=1)
    assert await is_gone(begun.process.pid)


async def test_one_that_nobody_waits_for_is_ended_with_its_children() -> None:
    text = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    begun = spawn.begin(python(text))
    assert begun.process.stdout is not None
    child = int(begun.process.stdout.readline())
    with anyio.move_on_after(0.3):
        await spawn.finish(begun, b"", seconds=30)
    assert await is_gone(child)
    assert await is_gone(begun.process.pid)


LINE = "import sys, time; sys.stdout.write(%s); sys.stdout.flush(); "


async def answer(text: str, *, seconds: float = 20) -> tuple[spawn.StartedProcess, ProcessOutput]:
    begun = spawn.begin(python(text, one_line=True))
    return begun, await spawn.finish(begun, b"", seconds=seconds)


async def seen_out(begun: spawn.StartedProcess) -> None:
    assert begun.process.stdout is not None
    with anyio.fail_after(5):
        while not begun.process.stdout.closed:  # noqa: ASYNC110  nobody tells
            await anyio.sleep(0.01)


async def test_a_line_is_the_answer_of_one_whose_answer_is_a_line() -> None:
    begun, finished = await answer(LINE % "'x' * 200_000 + '\\n'" + "time.sleep(0.3); sys.exit(7)")
    assert (finished.exit_code, len(finished.stdout), finished.stdout[-1:]) == (None, 200_001, b"\n")
    assert await is_gone(begun.process.pid)


async def test_one_that_says_no_line_is_waited_for() -> None:
    _, finished = await answer("import sys; sys.stdout.write('half'); sys.exit('why')")
    assert (finished.exit_code, finished.stdout, finished.stderr) == (1, b"half", b"why\n")


async def test_one_that_complains_at_length_before_its_line_is_heard() -> None:
    """More than a pipe holds: it could not go on if nobody read that."""
    begun, finished = await answer("import sys; sys.stderr.write('x' * 300_000); sys.stderr.flush(); print('{}')")
    assert finished.stdout == b"{}\n"
    await seen_out(begun)


async def test_one_whose_streams_somebody_else_holds_is_seen_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.process.conversation._LEAVE_SECONDS", 0.2)
    text = "import subprocess; p = subprocess.Popen(['sleep', '20']); print(p.pid, flush=True)"
    begun, finished = await answer(text)
    await seen_out(begun)
    assert begun.process.returncode == 0
    os.kill(int(finished.stdout), signal.SIGKILL)


async def test_the_end_of_one_is_waited_for_by_one_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when there was none at first, and its patience ends before another is tried."""
    opened: list[int] = []

    def pidfd_open(pid: int, flags: int = 0) -> int:
        opened.append(pid)
        if len(opened) == 1:
            raise OSError(errno.EMFILE, "too many open files")
        return really(pid, flags)

    really = os.pidfd_open
    monkeypatch.setattr("os.pidfd_open", pidfd_open)
    monkeypatch.setattr("browser_shell.process.conversation._LEAVE_SECONDS", 0.15)
    monkeypatch.setattr("browser_shell.process.conversation._RETRY_SECONDS", 0.4)
    monkeypatch.setattr("browser_shell.process.conversation.signal_group", lambda *_: None)
    begun, _ = await answer(LINE % "'{}\\n'" + "import os; [os.close(n) for n in (1, 2)]; time.sleep(0.8); os._exit(0)")
    await seen_out(begun)
    assert len(opened) == 2


async def test_what_comes_after_the_line_is_nobodys() -> None:
    begun, finished = await answer(LINE % "'{}\\n'" + "time.sleep(0.2); print('more', flush=True)")
    await seen_out(begun)
    assert (finished.stdout, begun.process.returncode) == (b"{}\n", 0)


@pytest.mark.promise("process:no-orphan")
async def test_one_that_does_not_end_after_its_line_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.process.conversation._LEAVE_SECONDS", 0.2)
    begun, finished = await answer(LINE % "'{}\\n'" + "time.sleep(60)")
    assert finished.stdout == b"{}\n"
    assert await is_gone(begun.process.pid)


async def test_no_answer_is_lost_while_there_are_no_files_left(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def pidfd_open(pid: int, flags: int = 0) -> int:
        tries.append(pid)
        if len(tries) < 3:
            raise OSError(errno.EMFILE, "too many open files")
        return really(pid, flags)

    really = os.pidfd_open
    monkeypatch.setattr("os.pidfd_open", pidfd_open)
    slow_end = "import os, sys, time; [os.close(n) for n in (0, 1, 2)]; time.sleep(0.3); os._exit(7)"
    finished = await run(slow_end, seconds=10)
    assert (finished.exit_code, len(tries)) == (7, 3)


async def test_a_line_of_one_that_was_given_up_at_the_same_moment_is_no_fault() -> None:
    begun = spawn.begin(python(LINE % "'{}\\n'", one_line=True))
    begun.process.wait()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await spawn.finish(begun, b"", seconds=5)
    assert scope.cancelled_caught
    await anyio.sleep(0.05)
    assert begun.process.stdout is not None
    assert begun.process.stdout.closed


async def test_no_pipe_is_left_open() -> None:
    await run("")
    before = open_files()
    for _ in range(5):
        await run("print(1)")
        await answer("print(1)")
        await spawn.discard(spawn.begin(python("input()")))
        begun = spawn.begin(python("import time; time.sleep(60)"))
        with anyio.move_on_after(0.2):
            await spawn.finish(begun, b"", seconds=30)
        assert await is_gone(begun.process.pid)
        del begun
    await anyio.sleep(0.2)
    assert open_files() <= before + 1
