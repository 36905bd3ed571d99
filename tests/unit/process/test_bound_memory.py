"""An end to what another process may take of the machine."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator

import pytest

from browser_shell.process.orphans import ProcessIdentity, bound_memory, mark_of

MEBIBYTE = 1024 * 1024


@pytest.fixture
def program() -> Iterator[int]:
    started = subprocess.Popen(["sleep", "30"])
    yield started.pid
    started.kill()
    started.wait()


def marked(pid: int) -> ProcessIdentity:
    mark = mark_of(pid)
    assert mark is not None
    return mark


def test_a_process_gets_an_end_to_its_memory(program: int) -> None:
    assert bound_memory(marked(program), 100 * MEBIBYTE)
    assert resource.prlimit(program, resource.RLIMIT_DATA) == (100 * MEBIBYTE, 100 * MEBIBYTE)


def test_an_end_that_is_nearer_already_stays(program: int) -> None:
    assert bound_memory(marked(program), 100 * MEBIBYTE)
    assert bound_memory(marked(program), 200 * MEBIBYTE)
    assert resource.prlimit(program, resource.RLIMIT_DATA) == (100 * MEBIBYTE, 100 * MEBIBYTE)


def test_what_has_ended_cannot_be_bound(program: int) -> None:
    gone = ProcessIdentity(pid=program, start_ticks=marked(program).start_ticks + 1)
    assert not bound_memory(gone, 1000 * MEBIBYTE)
