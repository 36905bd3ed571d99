"""Runs end by themselves, at a limit or by cancellation. In every case the container is removed."""

from __future__ import annotations

import time

import anyio
import pytest

from browser_shell.core.containers import ContainerEnd, ContainerLimits
from browser_shell.core.errors import SandboxUnavailable
from support.job_box import MIB, Finished, JobBox, remaining_processes

FOREVER = "import time\nopen('/output/started','w').write('x')\nprint('started', flush=True)\ntime.sleep(600)"


def assert_removed(box: JobBox, finished: Finished) -> None:
    assert box.labelled(finished.directory.name) == []
    assert remaining_processes(finished.report.container_id) == []


@pytest.mark.parametrize("code", [0, 124, 137])
def test_an_exit_code_is_passed_on_unchanged(box: JobBox, code: int) -> None:
    finished = box.run("sh", "-c", f"exit {code}")
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.EXITED, code)


def test_a_program_killed_by_a_signal_has_the_exit_code_of_a_shell(box: JobBox) -> None:
    finished = box.run("sh", "-c", "kill -9 $$")
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.EXITED, 137)


def test_a_missing_program_is_a_result(box: JobBox) -> None:
    finished = box.run("/nonexistent")
    assert finished.report.exit_code == 127
    assert b"/nonexistent" in finished.log


@pytest.mark.promise("jobs:deadline")
def test_files_written_before_the_deadline_are_handed_over(box: JobBox) -> None:
    finished = box.python(FOREVER, limits=ContainerLimits(timeout_seconds=2))
    assert finished.report.end is ContainerEnd.TIMED_OUT
    assert finished.files == ["started"]
    assert finished.report.output_complete
    assert_removed(box, finished)


@pytest.mark.promise("jobs:deadline")
def test_a_slow_hand_over_does_not_make_a_program_time_out(box: JobBox) -> None:
    script = "head -c 20000000 /dev/zero > /output/large; echo done; exit 3"
    order = box.order(["sh", "-c", script], limits=ContainerLimits(timeout_seconds=4))

    def block(_: bytes) -> None:
        time.sleep(4)

    async def run() -> Finished:
        return await box.finish(order, on_output=block)

    finished = anyio.run(run)
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.EXITED, 3)
    assert finished.report.output_complete


@pytest.mark.promise("jobs:deadline")
def test_signals_to_process_1_do_not_extend_the_deadline(box: JobBox) -> None:
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
    assert_removed(box, finished)


@pytest.mark.promise("jobs:processes")
def test_a_fork_bomb_is_contained_and_killed(box: JobBox) -> None:
    finished = box.python(
        "import os,time\nopen('/output/started','w').write('x')\n"
        "while True:\n  try: os.fork()\n  except OSError: pass\n",
        limits=ContainerLimits(timeout_seconds=3, processes=64),
    )
    assert finished.report.end is ContainerEnd.TIMED_OUT
    assert finished.files == ["started"], "the hand-over needs no free process"
    assert_removed(box, finished)


@pytest.mark.promise("jobs:processes")
def test_the_number_of_processes_is_limited(box: JobBox) -> None:
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
def test_a_child_killed_for_memory_is_reported_as_out_of_memory(box: JobBox) -> None:
    finished = box.python(
        "import subprocess,sys\n"
        "open('/output/started','w').write('x')\n"
        "child=subprocess.run([sys.executable,'-c','b=bytearray(2*1024**3)'])\n"
        "print(child.returncode)\n"
        "sys.exit(child.returncode != 0)"
    )
    assert (finished.report.end, finished.report.exit_code) == (ContainerEnd.OUT_OF_MEMORY, 1)
    assert finished.log.split()[-1] == b"-9"
    assert finished.files == ["started"]


@pytest.mark.promise("jobs:memory")
def test_files_in_memory_count_towards_the_memory_limit(box: JobBox) -> None:
    finished = box.python(
        "import ctypes,os\n"
        "f=ctypes.CDLL(None).memfd_create(b'x',0)\n"
        "for n in range(20):\n"
        "  g=os.memfd_create(str(n))\n"
        "  for _ in range(100): os.write(g,bytes(1024*1024))\n"
    )
    assert finished.report.end is ContainerEnd.OUT_OF_MEMORY


@pytest.mark.promise("jobs:cancel")
def test_cancelling_a_run_kills_it_at_once(box: JobBox) -> None:
    order = box.order(["python", "/work/program.py"], files={"program.py": FOREVER})
    created: list[str] = []

    async def cancel() -> None:
        async with anyio.create_task_group() as group:

            def on_output(_: bytes) -> None:
                group.cancel_scope.cancel()

            await box.finish(order, on_output=on_output, on_created=created.append)

    start = time.monotonic()
    anyio.run(cancel)
    assert time.monotonic() - start < 20
    assert box.labelled(order.run_id) == []
    assert remaining_processes(created[0]) == []


@pytest.mark.promise("jobs:cancel")
@pytest.mark.parametrize("seconds", [0.01, 0.05, 0.15, 0.4, 1.2])
def test_cancelling_at_any_time_leaves_no_container(box: JobBox, seconds: float) -> None:
    order = box.order(["python", "/work/program.py"], files={"program.py": FOREVER})

    async def cancel() -> None:
        with anyio.move_on_after(seconds):
            await box.finish(order)

    anyio.run(cancel)
    assert box.labelled(order.run_id) == []


def test_a_run_whose_start_is_refused_never_starts(box: JobBox) -> None:
    order = box.order(["sh", "-c", "echo ran > /output/x"])

    def refuse(_: str) -> None:
        raise SandboxUnavailable("the audit log is full")

    async def attempt() -> None:
        await box.finish(order, on_created=refuse)

    with pytest.raises(SandboxUnavailable, match="audit log"):
        anyio.run(attempt)
    assert box.labelled(order.run_id) == []
    assert not order.log_path.exists()


def test_output_is_passed_on_while_the_program_runs(box: JobBox) -> None:
    order = box.order(["sh", "-c", "echo one; sleep 2; echo two"])
    received: list[tuple[bytes, float]] = []

    def on_output(data: bytes) -> None:
        received.append((data, time.monotonic()))

    async def run() -> None:
        await box.finish(order, on_output=on_output)

    anyio.run(run)
    assert b"".join(data for data, _ in received) == b"one\ntwo\n"
    assert received[-1][1] - received[0][1] > 1


def test_concurrent_runs_do_not_mix(box: JobBox) -> None:
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


def test_a_hand_over_larger_than_all_buffers_is_complete(box: JobBox) -> None:
    finished = box.python(
        "import os\nopen('/output/large','wb').write(bytes(100*1024*1024))",
        limits=ContainerLimits(timeout_seconds=30, output_bytes=128 * MIB),
    )
    assert finished.report.output_complete
    assert (finished.output / "large").stat().st_size == 100 * MIB
