"""Whether a run's directory holds what its evidence says, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.jobs.evidence import EVIDENCE_NAME, FORMAT, LOG_NAME, MAX_EVIDENCE_BYTES, OUTPUT_NAME
from browser_shell.jobs.output_files import UNLISTED_REASON, Collected, collect, hash_file
from browser_shell.jobs.run_store import FACTS_NAME, known_entries
from browser_shell.policy.messages import printable
from browser_shell.policy.strict_json import parse_json
from browser_shell.process.plain_files import read_plain_file


@dataclass(slots=True, kw_only=True)
class EvidenceVerdict:
    """What was found in one run's directory."""

    run_id: str
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sha256: str = ""
    """Of the evidence as it is on the disk."""
    document: JsonObject = field(default_factory=dict)
    files: int = 0
    under_way: bool = False
    """Its beginning is still written down, so it says of itself that it has no end yet."""

    @property
    def sound(self) -> bool:
        return not self.problems


def check_run(directory: Path) -> EvidenceVerdict:
    """Raises: OSError when the directory cannot be read at all."""
    verdict = EvidenceVerdict(run_id=directory.name, under_way=(directory / FACTS_NAME).exists())
    content = read_plain_file(directory / EVIDENCE_NAME, max_bytes=MAX_EVIDENCE_BYTES)
    if content is None:
        verdict.problems.append(f"{EVIDENCE_NAME} is missing, too large or no plain file: the run has no end")
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
        verdict.notes.append("there were more files than are looked at; those are not covered")
    if unlisted := _unlisted(document):
        verdict.notes.append(f"{unlisted} entries are only counted, because {UNLISTED_REASON}; those are not covered")
    return verdict


def _check_directory(directory: Path, document: JsonObject) -> Iterator[str]:
    if document.get("run_id") != directory.name:
        yield f"{EVIDENCE_NAME} is of the run {document.get('run_id')!r}, not of {directory.name}"
    for entry in sorted(directory.iterdir()):
        if entry.name not in known_entries():
            yield f"{printable(entry.name)} does not belong here"


def _check_log(directory: Path, document: JsonObject) -> Iterator[str]:
    said = document.get("log")
    path = directory / LOG_NAME
    if said is None:
        if path.exists():
            yield f"{LOG_NAME} is not in the evidence"
        return
    try:
        found = hash_file(path)
    except OSError:
        yield f"{LOG_NAME} is missing or no plain file"
        return
    if not isinstance(said, dict) or (said.get("size"), said.get("sha256")) != (found.size, found.sha256):
        yield f"{LOG_NAME} was changed"


def _check_output(directory: Path, document: JsonObject) -> Iterator[str]:
    said = _files(document)
    found = collect(directory / OUTPUT_NAME)
    on_disk = {file.path: file for file in found.files}
    for path in sorted(said.keys() | on_disk.keys()):
        entry, file = said.get(path), on_disk.get(path)
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
    for odd in found.refused:
        if odd.path not in refused and odd.path not in said:
            yield f"{OUTPUT_NAME}/{printable(odd.path)} was added ({odd.reason})"
    yield from _check_empty_directories(document, found)
    if found.unlisted != _unlisted(document):
        yield f"{OUTPUT_NAME} holds {found.unlisted} entries that are only counted, not {_unlisted(document)}"


def _check_empty_directories(document: JsonObject, found: Collected) -> Iterator[str]:
    value = document.get("empty_directories")
    said = {str(path) for path in value} if isinstance(value, list) else set()
    on_disk = set(found.empty_directories)
    for path in sorted(said ^ on_disk):
        happened = "was added or emptied" if path in on_disk else "is missing or no longer empty"
        yield f"the empty directory {OUTPUT_NAME}/{printable(path)} {happened}"


def _files(document: JsonObject) -> dict[str, JsonObject]:
    return {str(entry.get("path")): entry for entry in _objects(document.get("files"))}


def _unlisted(document: JsonObject) -> JsonValue:
    said = document.get("unlisted")
    return said.get("count") if isinstance(said, dict) else 0


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _end(document: JsonObject) -> str:
    outcome = document.get("outcome")
    return printable(str(outcome.get("end"))) if isinstance(outcome, dict) else "unknown"
