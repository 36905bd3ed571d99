"""No file name can make the evidence unreadable, and entries that it does not cover are counted."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.core.containers import RefusalReason, RefusedOutput
from browser_shell.jobs import output_files
from browser_shell.jobs.containers import handover
from browser_shell.jobs.evidence import MAX_EVIDENCE_BYTES, RunEnd, compose, encode, write_evidence
from browser_shell.jobs.evidence_check import check_run
from browser_shell.jobs.output_files import UNLISTED_REASON, Collected, OutputFile, collect
from support.fake_engine import container_report
from support.job_plans import an_output_directory, run_facts

ENTRIES = 9_990
REFUSED = RefusedOutput(path="\\" * handover.MAX_PATH_BYTES, reason=RefusalReason.SPECIAL_FILE)
REPORT = replace(container_report(), refused=(REFUSED,) * 100, refused_count=100)
END = RunEnd(end="exited", complete=True, ended="", report=REPORT)


def write(output: Path) -> int:
    """Write the evidence and return its size."""
    return len(write_evidence(output.parent, compose(run_facts(), END, collect(output), None)))


def fill(output: Path, *, letter: bytes, suffix: bytes, directories: bool) -> None:
    """Create as many entries as a job can, with paths as long as it can make them."""
    name = letter * (250 // len(letter))
    path = os.fsencode(output)
    for _ in range(7):
        path += b"/" + name
        Path(os.fsdecode(path)).mkdir()
    handle = os.open(path, os.O_RDONLY)
    for number in range(ENTRIES - 7):
        leaf = name[: len(letter) * (220 // len(letter))] + str(number).encode() + suffix
        if directories:
            os.mkdir(leaf, dir_fd=handle)
        else:
            os.close(os.open(leaf, os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=handle))
    os.close(handle)


def test_the_format_has_exactly_these_members() -> None:
    facts = run_facts()
    stored = {"began", "image", "limits", "parameters", "policy_digest", "run_id", "subject", "tool"}
    assert facts.as_json().keys() == stored
    document = compose(facts, END, Collected(), None)
    assert document["began"] == facts.start_time
    assert document.keys() == stored | {
        *("format", "complete", "audit", "ended", "seconds", "outcome", "log"),
        *("files", "files_cut", "empty_directories", "unlisted", "refused", "refused_count"),
    }


@pytest.mark.promise("evidence:a-job-cannot-make-it-unreadable")
@pytest.mark.parametrize(
    ("letter", "suffix", "directories"),
    [
        ("ä".encode(), b".xlsx", False),
        ("ä".encode(), b"", True),
        ("\U0001f600".encode(), b".xlsx", False),
        (b'"', b".pptx", False),
    ],
)
def test_long_names_cannot_make_the_evidence_too_large(
    tmp_path: Path, letter: bytes, suffix: bytes, directories: bool
) -> None:
    output = an_output_directory(tmp_path)
    fill(output, letter=letter, suffix=suffix, directories=directories)
    assert write(output) < MAX_EVIDENCE_BYTES
    verdict = check_run(output.parent)
    assert verdict.problems == []
    listed = verdict.document["empty_directories" if directories else "files"]
    assert isinstance(listed, list)
    count = ENTRIES - 7 - len(listed)
    assert verdict.document["unlisted"] == {"count": count, "reason": UNLISTED_REASON}
    assert verdict.document["refused_count"] == count + REPORT.refused_count
    assert any("not covered" in note for note in verdict.notes)


def test_names_that_are_not_utf8_are_bounded_too(tmp_path: Path) -> None:
    output = an_output_directory(tmp_path)
    fill(output, letter="ä".encode(), suffix=b"\xff", directories=False)
    assert write(output) < MAX_EVIDENCE_BYTES
    assert check_run(output.parent).problems == []


def test_the_maximum_of_entries_fits_beside_the_maximum_of_path_bytes() -> None:
    longest = max(output_files._TYPES.types_map_inv[1], key=len)
    file = OutputFile(path="", size=output_files.MAX_FILE_BYTES, sha256="0" * 64, mime=longest)
    collected = Collected(files=[file] * output_files.MAX_ENTRIES)
    without_paths = encode(compose(run_facts(), END, collected, file))
    assert len(without_paths) + output_files.MAX_LISTED_BYTES < MAX_EVIDENCE_BYTES


def test_evidence_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="verify reads") as raised:
        write_evidence(tmp_path, {"a": "x" * MAX_EVIDENCE_BYTES})
    assert raised.value.strerror
    assert list(tmp_path.iterdir()) == []
