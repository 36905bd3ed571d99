"""Whether a process lives is asked twice a call, and must never be answered for another one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from browser_shell.process.orphans import LivenessProbe, ProcessIdentity, mark_of
from support.processes import open_files


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "60"]) as sleeping:
        yield sleeping
        sleeping.kill()


def marked(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    mark = mark_of(process.pid)
    assert mark is not None
    return mark


def test_one_that_ended_lives_no_more_whether_or_not_it_was_collected(process: subprocess.Popen[bytes]) -> None:
    witness = LivenessProbe(marked(process))
    assert witness.lives
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not witness.lives
    process.wait()
    assert not witness.lives
    witness.close()


def test_a_number_that_was_given_to_another_process_is_not_taken_for_it(process: subprocess.Popen[bytes]) -> None:
    before = open_files()
    with pytest.raises(ProcessLookupError):
        LivenessProbe(replace(marked(process), start_ticks=1))
    assert open_files() == before


def test_one_that_is_gone_has_no_witness(process: subprocess.Popen[bytes]) -> None:
    mark = marked(process)
    process.kill()
    process.wait()
    with pytest.raises(ProcessLookupError):
        LivenessProbe(mark)
