"""The directories of runs: created before a run starts, finished by its evidence, removed when old."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.process.files import replace_file

FACTS_NAME = "run.json"
EVIDENCE_NAME = "evidence.json"
LOG_NAME = "job.log"
OUTPUT_NAME = "output"
MAX_KEPT_RUNS = 10_000
"""Bounds the time that listing all runs takes, however small they are."""
_MIN_ENTRY_BYTES = 4096
_MAX_FACTS_BYTES = 1024 * 1024
_RUN_ID = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts known before a run starts. Stored as run.json, in case the server dies during the run.

    The defaults are for a run whose run.json was lost too.
    """

    run_id: str
    start_time: str
    subject: str = ""
    tool: str = ""
    parameters: JsonObject = field(default_factory=dict)
    image: str = ""
    limits: JsonObject = field(default_factory=dict)
    policy_digest: str = ""

    def as_json(self) -> JsonObject:
        values = plain(asdict(self))
        values["began"] = values.pop("start_time")
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    run_id: str
    directory: Path
    modified: float
    size_bytes: int
    finished: bool


@dataclass(slots=True, kw_only=True)
class RunStore:
    """`{root}/{run_id}/` with output/, job.log, and evidence.json at the end. One server uses a root at a time."""

    root: Path
    active: set[str] = field(default_factory=set)
    """Runs of this server that are in progress. They are neither removed nor closed by upkeep."""

    def begin(self, facts: RunFacts) -> Path:
        """Create the directory of a run. Raises: OSError."""
        directory = self.root / facts.run_id
        directory.mkdir(mode=0o700)
        replace_file(directory / FACTS_NAME, json.dumps(facts.as_json()).encode("ascii"))
        return directory

    def end(self, run_id: str) -> None:
        """Mark a run as ended, after its evidence was recorded. Raises: OSError."""
        (self.root / run_id / FACTS_NAME).unlink(missing_ok=True)

    def facts_of(self, run_id: str) -> RunFacts | None:
        """Read run.json; None when it is missing, not valid or of another run."""
        try:
            with (self.root / run_id / FACTS_NAME).open("rb") as file:
                facts = _parse_facts(json.loads(file.read(_MAX_FACTS_BYTES)))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return facts if facts.run_id == run_id else None

    def runs(self) -> list[StoredRun]:
        """List all runs, oldest first. Raises: OSError."""
        return sorted(map(self._inspect, self.run_ids()), key=lambda run: (run.modified, run.run_id))

    def run_ids(self) -> list[str]:
        """List directories named like a run, unordered. Raises: OSError."""
        with os.scandir(self.root) as entries:
            return [entry.name for entry in entries if is_run_id(entry.name) and entry.is_dir(follow_symlinks=False)]

    def remove(self, run_id: str) -> None:
        """Remove a run without following links. Raises: OSError."""
        if run_id in self.active:
            raise OSError("the run is in progress")
        # Renamed first: a half-removed run must not look like a run.
        removing = self.root / f".removing-{run_id}"
        (self.root / run_id).rename(removing)
        shutil.rmtree(removing)

    def finish_removals(self) -> None:
        """Finish the removals of a server that was killed. Raises: OSError."""
        for entry in self.root.glob(".removing-*"):
            shutil.rmtree(entry)

    def _inspect(self, run_id: str) -> StoredRun:
        directory = self.root / run_id
        size = _disk_bytes(directory)
        for parent, directories, files in os.walk(directory):
            size += sum(_disk_bytes(Path(parent) / name) for name in (*directories, *files))
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
    """Select finished runs that are too old, then the oldest until size and number are within the limits."""
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


def _disk_bytes(path: Path) -> int:
    """Return the disk usage. Directories, empty files and links count as one block on every file system."""
    try:
        return max(path.lstat().st_blocks * 512, _MIN_ENTRY_BYTES)
    except FileNotFoundError:
        # A run in progress may rename its files meanwhile.
        return 0


def _parse_facts(value: JsonValue) -> RunFacts:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    texts = {name: str(value[name]) for name in ("run_id", "subject", "tool", "image", "policy_digest")}
    parameters, limits = value["parameters"], value["limits"]
    if not isinstance(parameters, dict) or not isinstance(limits, dict):
        raise TypeError("not objects")
    return RunFacts(**texts, parameters=parameters, limits=limits, start_time=str(value["began"]))


def plain(values: dict[str, object]) -> JsonObject:
    """Convert to JSON types: tuples become lists; other types raise TypeError."""
    converted: JsonObject = json.loads(json.dumps(values))
    return converted
