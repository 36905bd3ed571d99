"""Compares a run's directory with its evidence: nothing changed, nothing missing, nothing added."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.core.json_values import JsonObject, JsonValue, parse_json
from browser_shell.jobs.evidence import FORMAT, MAX_EVIDENCE_BYTES
from browser_shell.jobs.output_files import UNLISTED_REASON, Collected, collect, hash_file
from browser_shell.jobs.run_store import EVIDENCE_NAME, FACTS_NAME, LOG_NAME, OUTPUT_NAME
from browser_shell.policy.messages import printable
from browser_shell.process.files import read_plain_file

_ENTRIES = frozenset({EVIDENCE_NAME, LOG_NAME, OUTPUT_NAME})
"""The only names in the directory of a finished run."""


@dataclass(slots=True, kw_only=True)
class EvidenceVerdict:
    run_id: str
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sha256: str = ""
    """Hash of the evidence file on the disk."""
    document: JsonObject = field(default_factory=dict)
    files: int = 0
    unfinished: bool = False
    """Whether run.json is still there, which the server removes at the end of a run."""

    @property
    def sound(self) -> bool:
        return not self.problems


def check_run(directory: Path) -> EvidenceVerdict:
    """Raises: OSError when the directory cannot be read."""
    verdict = EvidenceVerdict(run_id=directory.name, unfinished=(directory / FACTS_NAME).exists())
    content = read_plain_file(directory / EVIDENCE_NAME, max_bytes=MAX_EVIDENCE_BYTES)
    if content is None:
        verdict.problems.append(f"{EVIDENCE_NAME} is missing, too large or not a regular file: the run has no end")
        return verdict
    verdict.sha256 = hashlib.sha256(content).hexdigest()
    try:
        document = parse_json(content.decode("utf-8"))
    except ValueError:
        verdict.problems.append(f"{EVIDENCE_NAME} is not JSON")
        return verdict
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        verdict.problems.append(f"{EVIDENCE_NAME} is not in the format {FORMAT!r}")
        return verdict
    verdict.document = document
    verdict.problems += [*_check_directory(directory, document), *_check_log(directory, document)]
    verdict.problems += _check_output(directory, document)
    verdict.files = len(_files(document))
    if document.get("complete") is not True:
        verdict.notes.append(f"the run is incomplete: {_end(document)}")
    if document.get("files_cut") is True:
        verdict.notes.append("there were too many files; the rest are not covered")
    if unlisted := _unlisted(document):
        verdict.notes.append(f"{unlisted} entries are only counted, because {UNLISTED_REASON}; they are not covered")
    return verdict


def _check_directory(directory: Path, document: JsonObject) -> Iterator[str]:
    if document.get("run_id") != directory.name:
        yield f"{EVIDENCE_NAME} belongs to the run {document.get('run_id')!r}, not to {directory.name}"
    for entry in sorted(directory.iterdir()):
        if entry.name not in _ENTRIES:
            yield f"{printable(entry.name)} does not belong here"


def _check_log(directory: Path, document: JsonObject) -> Iterator[str]:
    listed = document.get("log")
    path = directory / LOG_NAME
    if listed is None:
        if path.exists():
            yield f"{LOG_NAME} is not in the evidence"
        return
    try:
        actual = hash_file(path)
    except OSError:
        yield f"{LOG_NAME} is missing or not a regular file"
        return
    if not isinstance(listed, dict) or (listed.get("size"), listed.get("sha256")) != (actual.size, actual.sha256):
        yield f"{LOG_NAME} was changed"


def _check_output(directory: Path, document: JsonObject) -> Iterator[str]:
    listed = _files(document)
    actual = collect(directory / OUTPUT_NAME)
    on_disk = {file.path: file for file in actual.files}
    for path in sorted(listed.keys() | on_disk.keys()):
        entry, file = listed.get(path), on_disk.get(path)
        name = f"{OUTPUT_NAME}/{printable(path)}"
        if entry is None:
            yield f"{name} was added"
        elif file is None:
            yield f"{name} is missing"
        elif entry.get("size") != file.size:
            yield f"{name} has {file.size} bytes, not {entry.get('size')}"
        elif entry.get("sha256") != file.sha256:
            yield f"{name} was changed"
    refused = {entry.get("path") for entry in _objects(document.get("refused"))}
    for special in actual.refused:
        if special.path not in refused and special.path not in listed:
            yield f"{OUTPUT_NAME}/{printable(special.path)} was added ({special.reason})"
    yield from _check_empty_directories(document, actual)
    if actual.unlisted != _unlisted(document):
        yield f"{OUTPUT_NAME} holds {actual.unlisted} entries that are only counted, not {_unlisted(document)}"


def _check_empty_directories(document: JsonObject, actual: Collected) -> Iterator[str]:
    value = document.get("empty_directories")
    listed = {str(path) for path in value} if isinstance(value, list) else set()
    on_disk = set(actual.empty_directories)
    for path in sorted(listed ^ on_disk):
        change = "was added or emptied" if path in on_disk else "is missing or no longer empty"
        yield f"the empty directory {OUTPUT_NAME}/{printable(path)} {change}"


def _files(document: JsonObject) -> dict[str, JsonObject]:
    return {str(entry.get("path")): entry for entry in _objects(document.get("files"))}


def _unlisted(document: JsonObject) -> JsonValue:
    unlisted = document.get("unlisted")
    return unlisted.get("count") if isinstance(unlisted, dict) else 0


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _end(document: JsonObject) -> str:
    outcome = document.get("outcome")
    return printable(str(outcome.get("end"))) if isinstance(outcome, dict) else "unknown"
