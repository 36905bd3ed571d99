"""Retention counts everything that a run stores, and bounds size, number and age."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browser_shell.jobs import run_store
from browser_shell.jobs.run_store import RunStore, StoredRun, runs_to_remove
from support.job_plans import RUN

MIB = 1024 * 1024


def size_of(root: Path) -> int:
    (run,) = RunStore(root=root).runs()
    return run.size_bytes


def stored(number: int, *, finished: bool = True) -> StoredRun:
    return StoredRun(run_id=f"{number:024x}", directory=Path(), modified=number, size_bytes=1, finished=finished)


@pytest.mark.promise("jobs:retention-counts-everything")
def test_directories_empty_files_and_links_count_as_4_kib_each(tmp_path: Path) -> None:
    output = tmp_path / RUN / "output"
    output.mkdir(parents=True)
    before = size_of(tmp_path)
    assert before >= 2 * 4096, "the run's own directory and its output"
    for number in range(300):
        (output / f"d{number}").mkdir()
    assert size_of(tmp_path) >= before + 300 * 4096
    for number in range(300):
        (output / f"f{number}").touch()
        (output / f"l{number}").symlink_to("/")
    assert size_of(tmp_path) >= before + 900 * 4096


def test_files_count_with_their_disk_usage_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "large").write_bytes(b"x" * 3 * MIB)
    output = tmp_path / "runs" / RUN / "output"
    output.mkdir(parents=True)
    (output / "link").symlink_to(tmp_path / "elsewhere")
    (output / "file").write_bytes(b"x" * MIB)
    assert MIB <= size_of(tmp_path / "runs") < 2 * MIB


def test_a_file_that_disappears_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / RUN).mkdir()
    monkeypatch.setattr(os, "walk", lambda top: [(str(top), ["gone"], [".evidence.json.new"])])
    assert size_of(tmp_path) == 4096


def test_the_oldest_finished_runs_are_removed_when_there_are_too_many() -> None:
    runs = [stored(0, finished=False), *(stored(number) for number in range(1, 6))]
    removed = runs_to_remove(runs, now=10, max_age_seconds=100, max_total_bytes=MIB, max_runs=4)
    assert [run.modified for run in removed] == [1, 2]


def test_the_number_of_runs_has_a_default_limit() -> None:
    runs = [stored(number) for number in range(run_store.MAX_KEPT_RUNS + 3)]
    removed = runs_to_remove(runs, now=0, max_age_seconds=1, max_total_bytes=MIB)
    assert [run.modified for run in removed] == [0, 1, 2]


def test_expired_runs_do_not_count_towards_the_number() -> None:
    runs = [stored(number) for number in range(6)]
    removed = runs_to_remove(runs, now=10, max_age_seconds=6, max_total_bytes=MIB, max_runs=2)
    assert [run.modified for run in removed] == [0, 1, 2, 3]
