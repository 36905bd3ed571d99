"""How runs end: by themselves, by their limits, by a caller who gives up. In every case the container is gone."""

from __future__ import annotations

import time

import anyio
import pytest

from browser_shell.core.containers import ContainerEnd, ContainerLimits
from browser_shell.core.errors import SandboxUnavailable
from support.job_box import MIB, Finished, JobBox, processes_left

FOREVER = "import time\nopen('/output/begun','w').write('x')\nprint('begun', flush=True)\ntime.sleep(600)"


def assert_gone(box: JobBox, finished: Finished) -> None:
    assert box.labelled(finished.folder.name) == []
    assert processes_left(finished.report.container_id) == []


@pytest.mark.parametrize("code", [0, 124, 137])
def test_an_exit_code_is_no_more_than_a_number(box: JobBox, code: int) -> None:
    finished = box.run("sh", "-c", f"exit {code}")
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.EXITED, code)


def test_a_program_killed_by_a_signal_is_told_as_a_shell_tells_it(box: JobBox) -> None:
    finished = box.run("sh", "-c", "kill -9 $$")
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.EXITED, 137)


def test_a_program_that_is_not_there_is_a_result(box: JobBox) -> None:
    finished = box.run("/nonexistent")
    assert finished.report.exit_code == 127
    assert b"/nonexistent" in finished.log


@pytest.mark.promise("jobs:deadline")
def test_what_was_written_before_the_deadline_still_arrives(box: JobBox) -> None:
    finished = box.python(FOREVER, limits=ContainerLimits(timeout_seconds=2))
    assert finished.report.end is ContainerEnd.TIMED_OUT
    assert finished.files == ["begun"]
    assert finished.report.output_complete
    assert_gone(box, finished)


@pytest.mark.promise("jobs:deadline")
def test_a_program_that_ended_in_time_is_not_late_because_of_its_output(box: JobBox) -> None:
    script = "head -c 20000000 /dev/zero > /output/large; echo done; exit 3"
    order = box.order(["sh", "-c", script], limits=ContainerLimits(timeout_seconds=4))

    def be_slow(_: bytes) -> None:
        time.sleep(4)

    async def run() -> Finished:
        return await box.finish(order, on_output=be_slow)

    finished = anyio.run(run)
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.EXITED, 3)
    assert finished.report.output_complete


@pytest.mark.promise("jobs:deadline")
def test_signals_to_the_init_do_not_help_a_program_to_live_longer(box: JobBox) -> None:
    finished = box.python(
        "import os,signal,time\n"
        "for n in range(1,65):\n"
        "  if n == signal.SIGTERM: continue\n"
        "  try: os.kill(1,n)\n"
        "  except OSError: pass\n"
        "while True: time.sleep(1)",
        limits=ContainerLimits(timeout_seconds=2),
    )
    assert finished.report.end is ContainerEnd.TIMED_OUT
    assert finished.report.timings.ended - finished.report.timings.started < 12
    assert_gone(box, finished)


@pytest.mark.promise("jobs:processes")
def test_a_fork_bomb_stays_in_its_box_and_dies(box: JobBox) -> None:
    finished = box.python(
        "import os,time\nopen('/output/begun','w').write('x')\nwhile True:\n  try: os.fork()\n  except OSError: pass\n",
        limits=ContainerLimits(timeout_seconds=3, processes=64),
    )
    assert finished.report.end is ContainerEnd.TIMED_OUT
    assert finished.files == ["begun"], "a job without a free process can still hand over"
    assert_gone(box, finished)


@pytest.mark.promise("jobs:processes")
def test_no_more_processes_than_the_limit(box: JobBox) -> None:
    finished = box.python(
        "import os,time\nn=0\n"
        "while True:\n"
        "  try:\n"
        "    if os.fork()==0: time.sleep(600)\n"
        "    n+=1\n"
        "  except OSError: break\n"
        "print(n)",
        limits=ContainerLimits(timeout_seconds=30, processes=50),
    )
    assert 10 < int(finished.log.split()[-1]) < 50


@pytest.mark.promise("jobs:memory")
def test_a_child_that_eats_the_memory_is_told_from_a_program_that_fails(box: JobBox) -> None:
    finished = box.python(
        "import subprocess,sys\n"
        "open('/output/begun','w').write('x')\n"
        "child=subprocess.run([sys.executable,'-c','b=bytearray(2*1024**3)'])\n"
        "print(child.returncode)\n"
        "sys.exit(child.returncode != 0)"
    )
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.OUT_OF_MEMORY, 1)
    assert finished.log.split()[-1] == b"-9"
    assert finished.files == ["begun"]


@pytest.mark.promise("jobs:memory")
def test_memory_cannot_be_had_by_way_of_files_either(box: JobBox) -> None:
    finished = box.python(
        "import ctypes,os\n"
        "f=ctypes.CDLL(None).memfd_create(b'x',0)\n"
        "for n in range(20):\n"
        "  g=os.memfd_create(str(n))\n"
        "  for _ in range(100): os.write(g,bytes(1024*1024))\n"
    )
    assert finished.report.end is ContainerEnd.OUT_OF_MEMORY


@pytest.mark.promise("jobs:cancel")
def test_a_caller_who_gives_up_ends_the_run_at_once(box: JobBox) -> None:
    order = box.order(["python", "/work/program.py"], files={"program.py": FOREVER})
    made: list[str] = []

    async def give_up() -> None:
        async with anyio.create_task_group() as group:

            def begun(_: bytes) -> None:
                group.cancel_scope.cancel()

            await box.finish(order, on_output=begun, on_made=made.append)

    began = time.monotonic()
    anyio.run(give_up)
    assert time.monotonic() - began < 20
    assert box.labelled(order.run_id) == []
    assert processes_left(made[0]) == []


@pytest.mark.promise("jobs:cancel")
@pytest.mark.parametrize("seconds", [0.01, 0.05, 0.15, 0.4, 1.2])
def test_giving_up_at_any_moment_leaves_no_container(box: JobBox, seconds: float) -> None:
    order = box.order(["python", "/work/program.py"], files={"program.py": FOREVER})

    async def give_up() -> None:
        with anyio.move_on_after(seconds):
            await box.finish(order)

    anyio.run(give_up)
    assert box.labelled(order.run_id) == []


def test_a_run_that_may_not_start_never_starts(box: JobBox) -> None:
    order = box.order(["sh", "-c", "echo ran > /output/x"])

    def refuse(_: str) -> None:
        raise SandboxUnavailable("the audit log is full")

    async def attempt() -> None:
        await box.finish(order, on_made=refuse)

    with pytest.raises(SandboxUnavailable, match="audit log"):
        anyio.run(attempt)
    assert box.labelled(order.run_id) == []
    assert not order.log_path.exists()


def test_output_is_told_while_the_program_runs(box: JobBox) -> None:
    order = box.order(["sh", "-c", "echo one; sleep 2; echo two"])
    heard: list[tuple[bytes, float]] = []

    def listen(data: bytes) -> None:
        heard.append((data, time.monotonic()))

    async def run() -> None:
        await box.finish(order, on_output=listen)

    anyio.run(run)
    assert b"".join(data for data, _ in heard) == b"one\ntwo\n"
    assert heard[-1][1] - heard[0][1] > 1


def test_many_runs_at_once_do_not_mix(box: JobBox) -> None:
    orders = [box.order(["sh", "-c", f"echo {n}; echo {n} > /output/n"]) for n in range(6)]
    finished: dict[int, Finished] = {}

    async def run_all() -> None:
        async def one(number: int) -> None:
            finished[number] = await box.finish(orders[number])

        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(one, number)

    anyio.run(run_all)
    for number, each in finished.items():
        assert each.log == f"{number}\n".encode()
        assert (each.output / "n").read_text("utf-8") == f"{number}\n"


def test_a_slow_reader_loses_nothing(box: JobBox) -> None:
    """The hand-over is larger than every buffer on the way."""
    finished = box.python(
        "import os\nopen('/output/large','wb').write(bytes(100*1024*1024))",
        limits=ContainerLimits(timeout_seconds=30, output_bytes=128 * MIB),
    )
    assert finished.report.output_complete
    assert (finished.output / "large").stat().st_size == 100 * MIB
