"""The directories of runs: one each, begun before anything happens, ended by its evidence, removed when old."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from browser_shell.core.json_values import JsonValue
from browser_shell.jobs.evidence import EVIDENCE_NAME, LOG_NAME, OUTPUT_NAME, RunFacts
from browser_shell.process.atomic_file import replace_file

FACTS_NAME = "run.json"
MAX_KEPT_RUNS = 10_000
"""However small they are: every look at them takes its time."""
_LEAST_ENTRY_BYTES = 4096
_MAX_FACTS_BYTES = 1024 * 1024
_RUN_ID = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One directory."""

    run_id: str
    directory: Path
    modified: float
    size_bytes: int
    finished: bool


@dataclass(slots=True, kw_only=True)
class RunStore:
    """`{root}/{run_id}/`: output/, job.log, and evidence.json at the end. One server has it at a time."""

    root: Path
    active: set[str] = field(default_factory=set)
    """Runs of this server that go on: nobody removes or ends them."""

    def begin(self, facts: RunFacts) -> Path:
        """Raises: OSError."""
        directory = self.root / facts.run_id
        directory.mkdir(mode=0o700)
        replace_file(directory / FACTS_NAME, json.dumps(asdict(facts)).encode("ascii"))
        return directory

    def end(self, run_id: str) -> None:
        """Its evidence is written. Raises: OSError."""
        (self.root / run_id / FACTS_NAME).unlink(missing_ok=True)

    def facts_of(self, run_id: str) -> RunFacts | None:
        """What was known of a run when it began; None when even that is not there."""
        try:
            with (self.root / run_id / FACTS_NAME).open("rb") as file:
                found = json.loads(file.read(_MAX_FACTS_BYTES))
            return _facts(found)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def runs(self) -> list[StoredRun]:
        """Oldest first. Whatever is not named like a run is not ours."""
        found = [self._look_at(run_id) for run_id in self.run_ids()]
        return sorted(found, key=lambda run: (run.modified, run.run_id))

    def run_ids(self) -> list[str]:
        """In no order. Raises: OSError."""
        with os.scandir(self.root) as entries:
            return [entry.name for entry in entries if is_run_id(entry.name) and entry.is_dir(follow_symlinks=False)]

    def remove(self, run_id: str) -> None:
        """Nothing of it is followed anywhere. Raises: OSError."""
        if run_id in self.active:
            raise OSError("the run goes on")
        directory = self.root / run_id
        # Gone under its own name at once: half a run must not pass for a whole one.
        aside = self.root / f".removing-{run_id}"
        directory.rename(aside)
        shutil.rmtree(aside)

    def finish_removals(self) -> None:
        """What a killed server was removing. Raises: OSError."""
        for entry in self.root.glob(".removing-*"):
            shutil.rmtree(entry)

    def _look_at(self, run_id: str) -> StoredRun:
        directory = self.root / run_id
        size = _taken_bytes(directory)
        for folder, directories, files in os.walk(directory):
            size += sum(_taken_bytes(Path(folder) / name) for name in (*directories, *files))
        return StoredRun(
            run_id=run_id,
            directory=directory,
            modified=directory.stat().st_mtime,
            size_bytes=size,
            finished=(directory / EVIDENCE_NAME).exists(),
        )


def runs_to_remove(
    runs: list[StoredRun],
    *,
    now: float,
    max_age_seconds: float,
    max_total_bytes: int,
    max_runs: int = MAX_KEPT_RUNS,
) -> list[StoredRun]:
    """The finished runs that are too old, and then the oldest until the rest is small and few enough. Pure."""
    removable: list[StoredRun] = []
    kept: list[StoredRun] = []
    for run in runs:
        too_old = run.finished and now - run.modified > max_age_seconds
        (removable if too_old else kept).append(run)
    total, count = sum(run.size_bytes for run in kept), len(kept)
    for run in kept:
        if total <= max_total_bytes and count <= max_runs:
            break
        if run.finished:
            removable.append(run)
            total -= run.size_bytes
            count -= 1
    return removable


def is_run_id(text: str) -> bool:
    return _RUN_ID.fullmatch(text) is not None


def known_entries() -> frozenset[str]:
    """What a finished run's directory holds, and nothing else."""
    return frozenset({EVIDENCE_NAME, LOG_NAME, OUTPUT_NAME})


def _taken_bytes(path: Path) -> int:
    """Directories, empty files and links take room too, also on file systems that count no blocks for them."""
    try:
        return max(path.lstat().st_blocks * 512, _LEAST_ENTRY_BYTES)
    except FileNotFoundError:
        # A run that goes on may rename a file under our eyes.
        return 0


def _facts(found: JsonValue) -> RunFacts:
    if not isinstance(found, dict):
        raise TypeError("not an object")
    words = {name: str(found[name]) for name in ("run_id", "subject", "tool", "image", "policy_digest", "began")}
    parameters, limits = found["parameters"], found["limits"]
    if not isinstance(parameters, dict) or not isinstance(limits, dict):
        raise TypeError("not objects")
    return RunFacts(**words, parameters=parameters, limits=limits)
