"""A run's directory must hold exactly the entries of its evidence. (tests/jobs/test_job_evidence.py has more.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from browser_shell.jobs import output_files
from browser_shell.jobs.evidence import RunEnd, compose, write_evidence
from browser_shell.jobs.evidence_check import check_run
from browser_shell.jobs.output_files import collect
from support.job_plans import an_output_directory, run_facts


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return an_output_directory(tmp_path)


def write(output: Path) -> None:
    end = RunEnd(end="exited", complete=True, ended="")
    write_evidence(output.parent, compose(run_facts(), end, collect(output), None))


def test_an_added_entry_is_detected_even_when_it_is_only_counted(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "MAX_LISTED_BYTES", 9)
    for name in "abcd":
        (output / name).touch()
    write(output)
    assert check_run(output.parent).problems == []
    (output / "e").touch()
    assert check_run(output.parent).problems == ["output holds 2 entries that are only counted, not 1"]


@pytest.mark.promise("evidence:any-change-is-found")
@pytest.mark.parametrize("path", ["new", "a/new", "empty/new"])
def test_an_added_empty_directory_is_detected(output: Path, path: str) -> None:
    (output / "a").mkdir()
    (output / "a" / "file").touch()
    (output / "empty").mkdir()
    write(output)
    assert check_run(output.parent).problems == []
    (output / path).mkdir()
    assert f"the empty directory output/{path} was added or emptied" in check_run(output.parent).problems


@pytest.mark.promise("evidence:any-change-is-found")
def test_a_removed_empty_directory_is_detected(output: Path) -> None:
    (output / "empty").mkdir()
    write(output)
    (output / "empty").rmdir()
    assert "the empty directory output/empty is missing or no longer empty" in check_run(output.parent).problems


def test_a_removed_output_directory_is_detected_even_when_it_was_empty(output: Path) -> None:
    write(output)
    assert check_run(output.parent).problems == []
    output.rmdir()
    assert check_run(output.parent).problems == ["the empty directory output/. is missing or no longer empty"]
