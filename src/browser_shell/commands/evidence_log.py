"""What the audit log says of runs, and whether what lies on the disk agrees with it."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.audit.chain import OwnKind, digest_of
from browser_shell.audit.query import Entry, read_entries
from browser_shell.audit.serialise import sanitise_value
from browser_shell.audit.signing import PublicKey
from browser_shell.audit.storage import LogFiles
from browser_shell.audit.verify import verify_log
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.json_values import JsonObject
from browser_shell.core.records import RecordKind
from browser_shell.jobs.evidence import EVIDENCE_NAME
from browser_shell.jobs.evidence_check import EvidenceVerdict

_SERVER_BOUNDS = frozenset({OwnKind.AUDIT_OPENED.value, OwnKind.AUDIT_CLOSED.value})
"""One server writes a log at a time: at these, no run of an earlier one goes on."""
_SAME_IN_BOTH = {"policy_digest": "policy digest", "image": "image", "subject": "subject"}


@dataclass(slots=True, kw_only=True)
class LogFacts:
    """What the log says of runs, and whether it can be believed."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: dict[str, Entry] = field(default_factory=dict)
    """The first record of each run's evidence."""
    spawns: dict[str, Entry] = field(default_factory=dict)
    """That a container is about to be made."""
    starts: dict[str, Entry] = field(default_factory=dict)
    """That its program is about to start."""
    removed: set[str] = field(default_factory=set)
    going: set[str] = field(default_factory=set)
    """Runs that began, and of which neither an end nor the end of their server is recorded."""

    def note(self, entry: Entry) -> None:
        """Takes the next record, in the order of the log."""
        kind, run_id = entry.word("kind"), entry.word("run_id")
        if kind in _SERVER_BOUNDS:
            self.going.clear()
        elif kind == RecordKind.MCP_CONTAINER_SPAWN.value:
            self.spawns[run_id] = entry
            self.going.add(run_id)
        elif kind == RecordKind.MCP_CONTAINER_EXEC.value:
            self.starts[run_id] = entry
            self.going.add(run_id)
        elif kind == RecordKind.MCP_FILE_WRITE.value and entry.word("path") == EVIDENCE_NAME:
            # Evidence is written once. Recorded again it is the same, or it was changed in between.
            self.evidence.setdefault(run_id, entry)
            self.going.discard(run_id)
        elif kind == RecordKind.RUN_REMOVED.value:
            self.removed.add(run_id)
            self.going.discard(run_id)
        elif kind == RecordKind.TOOL_FINISHED.value:
            # Not MCP_CONTAINER_CLEANUP: after that the server still hashes what the run left.
            self.going.discard(entry.word("call_id"))


def read_log(log: Path, key_file: Path | None) -> LogFacts:
    """Raises: ConfigurationInvalid when there is no log, or no key."""
    facts = LogFacts()
    try:
        key = PublicKey.read(key_file or LogFiles(log).public_key)
        checked = verify_log(log, key=key)
        facts.problems += [f"audit log: {problem}" for problem in checked.problems]
        for entry in read_entries(log):
            facts.note(entry)
    except OSError as cause:
        raise ConfigurationInvalid(f"{log}: {cause.strerror or cause}") from cause
    if checked.last_signed is None:
        facts.problems.append("audit log: nothing in it is signed")
    if checked.unsigned_records:
        facts.notes.append(
            f"the last {checked.unsigned_records} records of the audit log are linked, but not signed yet"
        )
    if key_file is None:
        facts.notes.append(
            f"the key {key.key_id} was taken from beside the log; pass --key with your own copy to be sure"
        )
    return facts


def missing_runs(facts: LogFacts, here: AbstractSet[str]) -> list[str]:
    """Every run that the log knows has a directory, from before its first record until its removal is recorded."""
    known = facts.spawns.keys() | facts.starts.keys() | facts.evidence.keys()
    gone = sorted(known - here - facts.removed - facts.going)
    return [f"run {run_id} is missing, and no record says that it was removed" for run_id in gone]


def hold_against_log(verdict: EvidenceVerdict, facts: LogFacts) -> None:
    """Adds what the log says against it. A run that goes on has no evidence yet, and that is no mistake."""
    run_id = verdict.run_id
    if verdict.under_way and run_id in facts.going:
        # Its evidence may be there already: it counts from its record on.
        verdict.problems.clear()
        verdict.notes.append("the run goes on, or its server was killed")
        return
    if not verdict.sha256:
        if verdict.under_way:
            verdict.problems.append("the audit log knows of no such run that goes on")
        return
    recorded = facts.evidence.get(run_id)
    if recorded is None:
        verdict.problems.append("the audit log has no record of this evidence")
    elif recorded.word("sha256") != verdict.sha256:
        verdict.problems.append(f"{EVIDENCE_NAME} is not the one that the audit log recorded")
    start = facts.starts.get(run_id)
    verdict.problems += _against_receipt(verdict.document, start)
    if verdict.document.get("audit") is None and start is not None:
        # A server that was killed left no receipt; a run that never started has none.
        verdict.notes.append(f"its start is record {start.word('seq')} of the audit log")
    announced = start or facts.spawns.get(run_id)
    if announced is not None:
        verdict.problems += _differences(verdict.document, announced)


def _against_receipt(document: JsonObject, start: Entry | None) -> Iterator[str]:
    said = document.get("audit")
    if said is None:
        return
    if start is None or not isinstance(said, dict):
        yield "the audit log has no record of its start"
    elif said.get("sequence") != start.number("seq") or said.get("sha256") != digest_of(start.raw):
        yield "the record of its start is not the one that the evidence names"


def _differences(document: JsonObject, announced: Entry) -> Iterator[str]:
    """Whoever killed the server could change what it had written of the run; the log they could not."""
    for name, words in _SAME_IN_BOTH.items():
        said = document.get(name)
        if not isinstance(said, str) or sanitise_value(said) != announced.word(name):
            yield f"its {words} is not the one in the audit log"
