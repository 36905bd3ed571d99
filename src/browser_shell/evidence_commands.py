"""`browser-shell evidence verify`: files against evidence, evidence against the audit log, the log against its key."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from browser_shell.audit.chain import digest_of
from browser_shell.audit.files import LogFiles
from browser_shell.audit.keys import PublicKey
from browser_shell.audit.reading import Entry, read_entries
from browser_shell.audit.verify import verify_log
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.records import RecordKind
from browser_shell.execution.evidence import EVIDENCE_NAME
from browser_shell.execution.evidence_check import EvidenceVerdict, check_run
from browser_shell.execution.run_store import RunStore, is_run_id
from browser_shell.settings import JOBS_DIRECTORY, read_policy_file, read_settings

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_EXIT_WRONG = 1


@dataclass(slots=True, kw_only=True)
class _LogFacts:
    """What the log says of runs, and whether it can be believed."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: dict[str, Entry] = field(default_factory=dict)
    """The first record of each run's evidence."""
    starts: dict[str, Entry] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)


def add_evidence_commands(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    evidence = commands.add_parser("evidence", help="check what test jobs left behind")
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
    verify.add_argument("--json", action="store_true", help="one JSON object instead of words")
    verify.set_defaults(command=_verify)


def _verify(arguments: argparse.Namespace) -> int:
    settings = read_settings()
    log = arguments.audit or settings.state_directory / JOBS_DIRECTORY / "audit.jsonl"
    facts = _read_log(log, arguments.key)
    verdicts = [_check(directory) for directory in _directories(arguments, settings.jobs.artifacts)]
    wanted = read_policy_file(arguments.policy).digest() if arguments.policy else ""
    if arguments.run is None:
        facts.problems += _missing_runs(facts, verdicts)
    for verdict in verdicts:
        _hold_against_log(verdict, facts)
        if wanted and verdict.document.get("policy_digest") != wanted:
            verdict.problems.append("it ran under another policy")
    sound = not facts.problems and all(verdict.sound for verdict in verdicts)
    print(_as_json(facts, verdicts, sound) if arguments.json else _in_words(facts, verdicts, sound))
    return 0 if sound else _EXIT_WRONG


def _directories(arguments: argparse.Namespace, artifacts: Path) -> list[Path]:
    root = arguments.artifacts or artifacts
    if arguments.run is not None:
        named = root / arguments.run if is_run_id(arguments.run) else Path(arguments.run).resolve()
        if not named.is_dir():
            raise ConfigurationInvalid(f"{named}: there is no such run")
        return [named]
    if not root.is_dir():
        raise ConfigurationInvalid(f"{root}: there are no runs")
    return [run.directory for run in RunStore(root=root).runs()]


def _check(directory: Path) -> EvidenceVerdict:
    try:
        return check_run(directory)
    except OSError as cause:
        raise ConfigurationInvalid(f"{directory}: {cause.strerror or cause}") from cause


def _read_log(log: Path, key_file: Path | None) -> _LogFacts:
    facts = _LogFacts()
    try:
        key = PublicKey.read(key_file or LogFiles(log).public_key)
        checked = verify_log(log, key=key)
        facts.problems += [f"audit log: {problem}" for problem in checked.problems]
        for entry in read_entries(log):
            _note(facts, entry)
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


def _note(facts: _LogFacts, entry: Entry) -> None:
    kind, run_id = entry.word("kind"), entry.word("run_id")
    if kind == RecordKind.MCP_FILE_WRITE.value and entry.word("path") == EVIDENCE_NAME:
        # Evidence is written once. Recorded again it is the same, or it was changed in between.
        facts.evidence.setdefault(run_id, entry)
    elif kind == RecordKind.MCP_CONTAINER_EXEC.value:
        facts.starts[run_id] = entry
    elif kind == RecordKind.RUN_REMOVED.value:
        facts.removed.add(run_id)


def _missing_runs(facts: _LogFacts, verdicts: list[EvidenceVerdict]) -> list[str]:
    here = {verdict.run_id for verdict in verdicts}
    gone = sorted(facts.evidence.keys() - here - facts.removed)
    return [f"run {run_id} is missing, and no record says that it was removed" for run_id in gone]


def _hold_against_log(verdict: EvidenceVerdict, facts: _LogFacts) -> None:
    if not verdict.sha256:
        if verdict.under_way and verdict.run_id not in facts.evidence:
            verdict.problems.clear()
            verdict.notes.append("the run goes on, or its server was killed")
        return
    recorded = facts.evidence.get(verdict.run_id)
    if recorded is None:
        verdict.problems.append("the audit log has no record of this evidence")
    elif recorded.word("sha256") != verdict.sha256:
        verdict.problems.append(f"{EVIDENCE_NAME} is not the one that the audit log recorded")
    said = verdict.document.get("audit")
    start = facts.starts.get(verdict.run_id)
    if said is None:
        # A server that was killed left no receipt; a run that never started has none.
        if start is not None:
            verdict.notes.append(f"its start is record {start.word('seq')} of the audit log")
        return
    if start is None or not isinstance(said, dict):
        verdict.problems.append("the audit log has no record of its start")
        return
    if said.get("sequence") != start.number("seq") or said.get("sha256") != digest_of(start.raw):
        verdict.problems.append("the record of its start is not the one that the evidence names")
    if start.word("policy_digest") != verdict.document.get("policy_digest"):
        verdict.problems.append("its policy digest is not the one in the audit log")


def _in_words(facts: _LogFacts, verdicts: list[EvidenceVerdict], sound: bool) -> str:
    lines = [f"WRONG  {problem}" for problem in facts.problems]
    for verdict in verdicts:
        lines += [f"WRONG  {verdict.run_id}: {problem}" for problem in verdict.problems]
        lines += [f"note   {verdict.run_id}: {note}" for note in verdict.notes]
    lines += [f"note   {note}" for note in facts.notes]
    files = sum(verdict.files for verdict in verdicts)
    lines.append(f"{'ok    ' if sound else 'BROKEN'} {len(verdicts)} runs, {files} files")
    return "\n".join(lines)


def _as_json(facts: _LogFacts, verdicts: list[EvidenceVerdict], sound: bool) -> str:
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
