"""Whatever names a job gives to what it leaves, its evidence can be read back, and says what it does not cover."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browser_shell.core.containers import (
    ContainerEnd,
    ContainerLimits,
    ContainerReport,
    ContainerTimings,
    RefusalReason,
    RefusedOutput,
)
from browser_shell.jobs import output_files
from browser_shell.jobs.containers import handover
from browser_shell.jobs.evidence import MAX_EVIDENCE_BYTES, RunEnd, RunFacts, as_bytes, compose, write_evidence
from browser_shell.jobs.evidence_check import check_run
from browser_shell.jobs.output_files import UNLISTED_REASON, Collected, OutputFile, collect
from support.job_plans import RUN, a_job

ENTRIES = 9_990
FACTS = RunFacts.of(
    run_id=RUN, subject="ann", plan=a_job(), image="i", limits=ContainerLimits(), policy_digest="d", began=0.0
)
REPORT = ContainerReport(
    container_id="c0ffee",
    image_id="i",
    end=ContainerEnd.EXITED,
    exit_code=0,
    log_size=0,
    log_cut=False,
    timings=ContainerTimings(created=0.1, started=0.2, first_output=0.3, ended=1.2, removed=1.3),
    output_complete=True,
    refused=(RefusedOutput(path="\\" * handover.MAX_PATH_BYTES, reason=RefusalReason.SPECIAL_FILE),) * 100,
    refused_count=100,
)
END = RunEnd(end="exited", complete=True, ended="", report=REPORT)


def a_run(directory: Path) -> Path:
    output = directory / RUN / "output"
    output.mkdir(parents=True)
    return output


def close(output: Path) -> int:
    """Writes the evidence; returns its size."""
    return write_evidence(output.parent, compose(FACTS, END, collect(output), None)).size


def fill(output: Path, *, letter: bytes, ending: bytes, directories: bool) -> None:
    """As many entries as a job can leave, with paths as long as it can make them."""
    name = letter * (250 // len(letter))
    place = os.fsencode(output)
    for _ in range(7):
        place += b"/" + name
        Path(os.fsdecode(place)).mkdir()
    handle = os.open(place, os.O_RDONLY)
    for number in range(ENTRIES - 7):
        leaf = name[: len(letter) * (220 // len(letter))] + str(number).encode() + ending
        if directories:
            os.mkdir(leaf, dir_fd=handle)
        else:
            os.close(os.open(leaf, os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=handle))
    os.close(handle)


@pytest.mark.promise("evidence:a-job-cannot-make-it-unreadable")
@pytest.mark.parametrize(
    ("letter", "ending", "directories"),
    [
        ("ä".encode(), b".xlsx", False),
        ("ä".encode(), b"", True),
        ("\U0001f600".encode(), b".xlsx", False),
        (b'"', b".pptx", False),
    ],
)
def test_names_cannot_make_evidence_that_nobody_reads(
    tmp_path: Path, letter: bytes, ending: bytes, directories: bool
) -> None:
    output = a_run(tmp_path)
    fill(output, letter=letter, ending=ending, directories=directories)
    assert close(output) < MAX_EVIDENCE_BYTES
    verdict = check_run(output.parent)
    assert verdict.problems == []
    listed = verdict.document["empty_directories" if directories else "files"]
    assert isinstance(listed, list)
    count = ENTRIES - 7 - len(listed)
    assert verdict.document["unlisted"] == {"count": count, "reason": UNLISTED_REASON}
    assert verdict.document["refused_count"] == count + REPORT.refused_count
    assert any("not covered" in note for note in verdict.notes)


def test_names_that_cannot_be_shown_are_bounded_too(tmp_path: Path) -> None:
    output = a_run(tmp_path)
    fill(output, letter="ä".encode(), ending=b"\xff", directories=False)
    assert close(output) < MAX_EVIDENCE_BYTES
    assert check_run(output.parent).problems == []


def test_as_many_entries_as_are_looked_at_fit_beside_the_longest_paths() -> None:
    longest = max(output_files._TYPES.types_map_inv[1], key=len)
    file = OutputFile(path="", size=output_files.MAX_FILE_BYTES, sha256="0" * 64, mime=longest)
    collected = Collected(files=[file] * output_files.MAX_ENTRIES)
    without_paths = as_bytes(compose(FACTS, END, collected, file))
    assert len(without_paths) + output_files.MAX_LISTED_BYTES < MAX_EVIDENCE_BYTES


def test_an_entry_more_among_those_only_counted_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "MAX_LISTED_BYTES", 9)
    output = a_run(tmp_path)
    for name in "abcd":
        (output / name).touch()
    close(output)
    assert check_run(output.parent).problems == []
    (output / "e").touch()
    assert check_run(output.parent).problems == ["output holds 2 entries that are only counted, not 1"]


def test_evidence_that_would_be_too_large_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="verify reads") as raised:
        write_evidence(tmp_path, {"a": "x" * MAX_EVIDENCE_BYTES})
    assert raised.value.strerror
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("evidence:any-change-is-found")
@pytest.mark.parametrize("place", ["new", "a/new", "empty/new"])
def test_an_empty_directory_that_was_added_is_found(tmp_path: Path, place: str) -> None:
    output = a_run(tmp_path)
    (output / "a").mkdir()
    (output / "a" / "file").touch()
    (output / "empty").mkdir()
    close(output)
    assert check_run(output.parent).problems == []
    (output / place).mkdir()
    assert f"the empty directory output/{place} was added or emptied" in check_run(output.parent).problems


@pytest.mark.promise("evidence:any-change-is-found")
def test_an_empty_directory_that_was_removed_is_found(tmp_path: Path) -> None:
    output = a_run(tmp_path)
    (output / "empty").mkdir()
    close(output)
    (output / "empty").rmdir()
    assert "the empty directory output/empty is missing or no longer empty" in check_run(output.parent).problems


def test_an_output_that_is_empty_is_not_one_that_is_missing(tmp_path: Path) -> None:
    output = a_run(tmp_path)
    close(output)
    assert check_run(output.parent).problems == []
    output.rmdir()
    assert check_run(output.parent).problems == ["the empty directory output/. is missing or no longer empty"]
