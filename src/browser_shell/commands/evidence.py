"""`browser-shell evidence verify`: files against evidence, evidence against the audit log, the log against its key."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from browser_shell.commands.evidence_log import LogFacts, hold_against_log, missing_runs, read_log
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.jobs.evidence_check import EvidenceVerdict, check_run
from browser_shell.jobs.run_store import RunStore, is_run_id
from browser_shell.settings import JOBS_DIRECTORY, read_policy_file, read_settings

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_EXIT_WRONG = 1


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
    store = RunStore(root=arguments.artifacts or settings.jobs.artifacts)
    # Before the log: a server that runs meanwhile writes a run's directory first, and its records soon after.
    verdicts = {directory: _check(directory) for directory in _directories(arguments.run, store)}
    facts = read_log(log, arguments.key)
    verdicts = {
        directory: _check(directory) if _has_ended_since(verdict, facts) else verdict
        for directory, verdict in verdicts.items()
        if directory.is_dir() or verdict.run_id not in facts.removed
    }
    if arguments.run is None:
        here = {verdict.run_id for verdict in verdicts.values()}
        facts.problems += missing_runs(facts, here | set(store.run_ids()))
    wanted = read_policy_file(arguments.policy).digest() if arguments.policy else ""
    for verdict in verdicts.values():
        hold_against_log(verdict, facts)
        if wanted and verdict.document and verdict.document.get("policy_digest") != wanted:
            verdict.problems.append("it ran under another policy")
    found = list(verdicts.values())
    sound = not facts.problems and all(verdict.sound for verdict in found)
    print(_as_json(facts, found, sound) if arguments.json else _in_words(facts, found, sound))
    return 0 if sound else _EXIT_WRONG


def _has_ended_since(verdict: EvidenceVerdict, facts: LogFacts) -> bool:
    return verdict.under_way and verdict.run_id in facts.evidence


def _directories(run: str | None, store: RunStore) -> list[Path]:
    if run is not None:
        named = store.root / run if is_run_id(run) else Path(run).resolve()
        if not named.is_dir():
            raise ConfigurationInvalid(f"{named}: there is no such run")
        return [named]
    if not store.root.is_dir():
        raise ConfigurationInvalid(f"{store.root}: there are no runs")
    return [stored.directory for stored in store.runs()]


def _check(directory: Path) -> EvidenceVerdict:
    try:
        return check_run(directory)
    except OSError as cause:
        raise ConfigurationInvalid(f"{directory}: {cause.strerror or cause}") from cause


def _in_words(facts: LogFacts, verdicts: list[EvidenceVerdict], sound: bool) -> str:
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
