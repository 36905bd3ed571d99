"""`browser-shell evidence verify`: files against evidence, evidence against the audit log, the log against its key."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.audit.chain import OwnKind, digest_of, sanitise_value
from browser_shell.audit.query import Entry, read_entries
from browser_shell.audit.signing import PublicKey
from browser_shell.audit.storage import LogFiles
from browser_shell.audit.verify import verify_log
from browser_shell.commands.audit import report_os_errors
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.json_values import JsonObject
from browser_shell.core.records import RecordKind
from browser_shell.jobs.evidence_check import EvidenceVerdict, check_run
from browser_shell.jobs.run_store import EVIDENCE_NAME, RunStore, is_run_id
from browser_shell.settings import JOBS_DIRECTORY, read_policy_file, read_settings

_EXIT_WRONG = 1
_SERVER_BOUNDS = frozenset({OwnKind.AUDIT_OPENED.value, OwnKind.AUDIT_CLOSED.value})
"""One server writes a log at a time, so no earlier run is in progress after one of these records."""
_SAME_IN_LOG = {"policy_digest": "policy digest", "image": "image", "subject": "subject"}


def add_evidence_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    evidence = commands.add_parser("evidence", help="check the evidence of test jobs")
    actions = evidence.add_subparsers(required=True, metavar="action")
    verify = actions.add_parser(
        "verify", help="check files, evidence and the audit log; exit 1 when something is wrong"
    )
    verify.add_argument("run", nargs="?", metavar="RUN_ID|DIR", help="one run (default: all)")
    verify.add_argument("--artifacts", type=Path, metavar="DIR", help="where runs are (default: from the settings)")
    verify.add_argument("--audit", type=Path, metavar="FILE", help="audit.jsonl of the server that ran them")
    verify.add_argument(
        "--key", type=Path, metavar="FILE", help="public key to trust (default: the one beside the log)"
    )
    verify.add_argument("--policy", type=Path, metavar="FILE", help="also require that this policy was in force")
    verify.add_argument("--json", action="store_true", help="one JSON object instead of text")
    verify.set_defaults(command=_verify)


def _verify(arguments: argparse.Namespace) -> int:
    settings = read_settings()
    log = arguments.audit or settings.state_directory / JOBS_DIRECTORY / "audit.jsonl"
    store = RunStore(root=arguments.artifacts or settings.jobs.artifacts)
    # Before the log is read: a live server creates a run's directory before it writes records.
    by_directory = {directory: _check(directory) for directory in _directories(arguments.run, store)}
    facts = read_log(log, arguments.key)
    verdicts = [
        # Checked again when the run ended between the two reads.
        _check(directory) if verdict.unfinished and verdict.run_id in facts.evidence else verdict
        for directory, verdict in by_directory.items()
        if directory.is_dir() or verdict.run_id not in facts.removed
    ]
    if arguments.run is None:
        facts.problems += _missing_runs(facts, {verdict.run_id for verdict in verdicts} | set(store.run_ids()))
    policy_digest = read_policy_file(arguments.policy).digest() if arguments.policy else ""
    for verdict in verdicts:
        _compare_with_log(verdict, facts)
        if policy_digest and verdict.document and verdict.document.get("policy_digest") != policy_digest:
            verdict.problems.append("it ran under another policy")
    sound = not facts.problems and all(verdict.sound for verdict in verdicts)
    print((_as_json if arguments.json else _as_text)(facts, verdicts, sound))
    return 0 if sound else _EXIT_WRONG


def _directories(run: str | None, store: RunStore) -> list[Path]:
    if run is not None:
        directory = store.root / run if is_run_id(run) else Path(run).resolve()
        if not directory.is_dir():
            raise ConfigurationInvalid(f"{directory}: there is no such run")
        return [directory]
    if not store.root.is_dir():
        raise ConfigurationInvalid(f"{store.root}: there are no runs")
    return [stored.directory for stored in store.runs()]


def _check(directory: Path) -> EvidenceVerdict:
    with report_os_errors(directory):
        return check_run(directory)


@dataclass(slots=True, kw_only=True)
class LogFacts:
    """The records about runs, and the problems of the log itself."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: dict[str, Entry] = field(default_factory=dict)
    """First record of each run's evidence file."""
    spawns: dict[str, Entry] = field(default_factory=dict)
    """Records that a container is about to be created."""
    starts: dict[str, Entry] = field(default_factory=dict)
    """Records that a program is about to start."""
    removed: set[str] = field(default_factory=set)
    in_progress: set[str] = field(default_factory=set)
    """Runs with a start record, without an end record and without the end of their server."""

    def add(self, entry: Entry) -> None:
        """Add the next record, in the order of the log."""
        kind, run_id = entry.text("kind"), entry.text("run_id")
        if kind in _SERVER_BOUNDS:
            self.in_progress.clear()
        elif kind == RecordKind.MCP_CONTAINER_SPAWN.value:
            self.spawns[run_id] = entry
            self.in_progress.add(run_id)
        elif kind == RecordKind.MCP_CONTAINER_EXEC.value:
            self.starts[run_id] = entry
            self.in_progress.add(run_id)
        elif kind == RecordKind.MCP_FILE_WRITE.value and entry.text("path") == EVIDENCE_NAME:
            # Evidence is written once. The first record counts: a later one may be of a changed file.
            self.evidence.setdefault(run_id, entry)
            self.in_progress.discard(run_id)
        elif kind == RecordKind.RUN_REMOVED.value:
            self.removed.add(run_id)
            self.in_progress.discard(run_id)
        elif kind == RecordKind.TOOL_FINISHED.value:
            # Not MCP_CONTAINER_CLEANUP: the server hashes the files of the run after that record.
            self.in_progress.discard(entry.text("call_id"))


def read_log(log: Path, key_file: Path | None) -> LogFacts:
    """Verify the log and collect its records about runs. Raises: ConfigurationInvalid without a log or a key."""
    facts = LogFacts()
    with report_os_errors(log):
        key = PublicKey.read(key_file or LogFiles(log).public_key)
        verified = verify_log(log, key=key)
        facts.problems += [f"audit log: {problem}" for problem in verified.problems]
        for entry in read_entries(log):
            facts.add(entry)
    if verified.last_signed is None:
        facts.problems.append("audit log: nothing in it is signed")
    if verified.unsigned_records:
        facts.notes.append(
            f"the last {verified.unsigned_records} records of the audit log are linked, but not signed yet"
        )
    if key_file is None:
        facts.notes.append(f"the key {key.key_id} was read from beside the log; pass --key with your own copy")
    return facts


def _missing_runs(facts: LogFacts, on_disk: AbstractSet[str]) -> list[str]:
    """A run has a directory from before its first record until its removal is recorded."""
    recorded = facts.spawns.keys() | facts.starts.keys() | facts.evidence.keys()
    missing = sorted(recorded - on_disk - facts.removed - facts.in_progress)
    return [f"run {run_id} is missing, and no record shows its removal" for run_id in missing]


def _compare_with_log(verdict: EvidenceVerdict, facts: LogFacts) -> None:
    """Add the problems that the log proves. A run in progress has no evidence yet, which is not a problem."""
    run_id = verdict.run_id
    if verdict.unfinished and run_id in facts.in_progress:
        # Evidence that is written but not recorded yet does not count.
        verdict.problems.clear()
        verdict.notes.append("the run is in progress, or its server was killed")
        return
    if not verdict.sha256:
        if verdict.unfinished:
            verdict.problems.append("the audit log has no such run in progress")
        return
    recorded = facts.evidence.get(run_id)
    if recorded is None:
        verdict.problems.append("the audit log has no record of this evidence")
    elif recorded.text("sha256") != verdict.sha256:
        verdict.problems.append(f"{EVIDENCE_NAME} is not the one that the audit log recorded")
    start = facts.starts.get(run_id)
    verdict.problems += _compare_receipt(verdict.document, start)
    if verdict.document.get("audit") is None and start is not None:
        # A run whose server was killed has a start record, but no receipt in its evidence.
        verdict.notes.append(f"its start is record {start.text('seq')} of the audit log")
    announced = start or facts.spawns.get(run_id)
    if announced is not None:
        verdict.problems += _compare_members(verdict.document, announced)


def _compare_receipt(document: JsonObject, start: Entry | None) -> Iterator[str]:
    receipt = document.get("audit")
    if receipt is None:
        return
    if start is None or not isinstance(receipt, dict):
        yield "the audit log has no record of its start"
    elif receipt.get("sequence") != start.number("seq") or receipt.get("sha256") != digest_of(start.raw):
        yield "the record of its start is not the one that the evidence names"


def _compare_members(document: JsonObject, announced: Entry) -> Iterator[str]:
    """run.json can be edited after a server was killed; the signed log cannot."""
    for name, label in _SAME_IN_LOG.items():
        value = document.get(name)
        if not isinstance(value, str) or sanitise_value(value) != announced.text(name):
            yield f"its {label} is not the one in the audit log"


def _as_text(facts: LogFacts, verdicts: list[EvidenceVerdict], sound: bool) -> str:
    lines = [f"WRONG  {problem}" for problem in facts.problems]
    for verdict in verdicts:
        lines += [f"WRONG  {verdict.run_id}: {problem}" for problem in verdict.problems]
        lines += [f"note   {verdict.run_id}: {note}" for note in verdict.notes]
    lines += [f"note   {note}" for note in facts.notes]
    files = sum(verdict.files for verdict in verdicts)
    lines.append(f"{'ok    ' if sound else 'BROKEN'} {len(verdicts)} runs, {files} files")
    return "\n".join(lines)


def _as_json(facts: LogFacts, verdicts: list[EvidenceVerdict], sound: bool) -> str:
    return json.dumps(
        {
            "sound": sound,
            "audit": {"problems": facts.problems, "notes": facts.notes},
            "runs": [
                {
                    "run_id": verdict.run_id,
                    "sound": verdict.sound,
                    "complete": verdict.document.get("complete") is True,
                    "problems": verdict.problems,
                    "notes": verdict.notes,
                    "files": verdict.files,
                    "evidence_sha256": verdict.sha256,
                }
                for verdict in verdicts
            ],
        }
    )
