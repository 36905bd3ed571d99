"""Read, select and export records, also while a server writes the log.

An export consists of JSON lines. Each record in it has a proof that the log's key signed it, without the other records.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from browser_shell.audit.chain import OwnKind, merkle_path, read_entry, root_from_path
from browser_shell.audit.signing import PublicKey, signed_checkpoint
from browser_shell.audit.storage import LogFiles, is_same_file, open_log_files
from browser_shell.audit.verify import Problem
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.json_values import JsonObject, JsonValue

FORMAT = "browser-shell audit export 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One parsed line."""

    file: str
    line: int
    raw: bytes
    members: dict[str, JsonValue]

    def text(self, name: str) -> str:
        """Return a member as text, '' if it is missing."""
        value = self.members.get(name, "")
        return value if isinstance(value, str) else str(value)

    def number(self, name: str) -> float | None:
        value = self.members.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Filters for records. Empty filters match everything. Times have the form of the log, in UTC."""

    since: str = ""
    until: str = ""
    subject: str = ""
    session: str = ""

    def matches(self, entry: Entry) -> bool:
        time = entry.text("time")
        return (
            (not self.since or time >= self.since)
            and (not self.until or time < self.until)
            and (not self.subject or entry.text("subject") == self.subject)
            and (not self.session or entry.text("session_id") == self.session)
        )


def parse_timestamp(text: str) -> str:
    """Convert a date or time to the form of the log; UTC if it has no zone. Raises: ConfigurationInvalid."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as cause:
        raise ConfigurationInvalid(f"{text[:40]!r} is not a date or time such as 2027-01-15T08:00:00Z") from cause
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.isoformat(timespec="milliseconds")


def read_entries(path: Path) -> Iterator[Entry]:
    """Read every complete JSON line without verifying it. Raises: OSError."""
    with open_log_files(LogFiles(path)) as opened:
        for name, file in opened:
            for number, raw in enumerate(file, 1):
                members = read_entry(raw) if raw.endswith(b"\n") else None
                if members is not None:
                    yield Entry(file=name, line=number, raw=raw, members=members)


def follow_entries(path: Path, *, pause: Callable[[], None]) -> Iterator[Entry]:
    """Yield new lines without end. Calls `pause` when there is nothing new. Raises: OSError."""
    file = path.open("rb")
    # Outside of the generator, which would seek only when the first line is requested.
    file.seek(0, os.SEEK_END)
    return _follow(path, file, pause)


def _follow(path: Path, file: BinaryIO, pause: Callable[[], None]) -> Iterator[Entry]:
    raw, number, successor = b"", 0, None
    try:
        while True:
            # Before the read: the old file was complete before the new one got its name.
            successor = _open_successor(path, file)
            while piece := file.readline():
                raw += piece
                if raw.endswith(b"\n"):
                    number += 1
                    members = read_entry(raw)
                    if members is not None:
                        yield Entry(file=path.name, line=number, raw=raw, members=members)
                    raw = b""
            if successor is None:
                pause()
            else:
                file.close()
                file, raw, number = successor, b"", 0
    finally:
        file.close()
        if successor is not None:
            successor.close()


def _open_successor(path: Path, file: BinaryIO) -> BinaryIO | None:
    """Open the file that now has the name; None if it is still the same one."""
    try:
        newer = path.open("rb")
    except FileNotFoundError:
        return None
    if is_same_file(newer, file):
        newer.close()
        return None
    return newer


def export_records(path: Path, selection: Selection, *, key: PublicKey) -> Iterator[JsonObject]:
    """Yield a header, then checkpoints, each followed by the records that it covers. Raises: OSError."""
    filters: JsonObject = {name: value for name, value in asdict(selection).items() if value}
    yield {"export": FORMAT, "public_key": key.pem().decode("ascii"), "key": key.key_id, "selection": filters}
    batch: list[Entry] = []
    for entry in read_entries(path):
        if entry.text("kind") == OwnKind.CHECKPOINT.value:
            yield from _export_batch(batch, entry, selection)
            batch = []
        batch.append(entry)
    for entry in batch:
        if _is_selected(entry, selection):
            yield {**_locate(entry), "checkpoint": None}


def check_export(lines: Iterable[bytes], *, key: PublicKey) -> tuple[int, list[Problem]]:
    """Return the number of proven records, and the problems of an export."""
    problems: list[Problem] = []
    roots: dict[int, str] = {}
    proven = 0
    for number, line in enumerate(lines, 1):
        item = read_entry(line) or {}
        if item.get("export") == FORMAT:
            continue
        sequence, problem = 0, ""
        if isinstance(item.get("signed"), str):
            checkpoint = signed_checkpoint(str(item["signed"]).encode(), key)
            if checkpoint is None:
                problem = f"is not a checkpoint signed by the key {key.key_id}"
            else:
                roots[checkpoint.seq] = checkpoint.root
        else:
            sequence, problem = _check_record(item, roots)
            proven += not problem
        if problem:
            problems.append(Problem(file="export", line=number, sequence=sequence, description=problem))
    return proven, problems


def _check_record(item: dict[str, JsonValue], roots: dict[int, str]) -> tuple[int, str]:
    """Return the number of a record and its problem, '' if it is proven."""
    record, checkpoint = read_entry(str(item.get("record", "")).encode()), item.get("checkpoint")
    sequence = record.get("seq") if record else None
    if not isinstance(sequence, int):
        return 0, "is not a record"
    if checkpoint is None:
        return sequence, "no checkpoint covers it yet: export again later"
    if not isinstance(checkpoint, int) or _compute_root(item) != roots.get(checkpoint, ""):
        return sequence, "its proof does not lead to a signed checkpoint"
    return sequence, ""


def _export_batch(batch: list[Entry], checkpoint: Entry, selection: Selection) -> Iterator[JsonObject]:
    selected = [index for index, entry in enumerate(batch) if _is_selected(entry, selection)]
    if not selected:
        return
    # The checkpoint precedes its records, so that an export can be checked in one pass.
    yield {"signed": checkpoint.raw.decode("ascii")}
    leaves = [hashlib.sha256(entry.raw).digest() for entry in batch]
    for index in selected:
        proof: list[JsonValue] = list(merkle_path(leaves, index))
        yield {**_locate(batch[index]), "checkpoint": checkpoint.members["seq"], "proof": proof}


def _is_selected(entry: Entry, selection: Selection) -> bool:
    return entry.text("kind") != OwnKind.CHECKPOINT.value and selection.matches(entry)


def _locate(entry: Entry) -> JsonObject:
    # The record as text, with its line end: the proof covers exactly these bytes.
    return {"file": entry.file, "line": entry.line, "record": entry.raw.decode("utf-8", "replace")}


def _compute_root(item: dict[str, JsonValue]) -> str:
    proof = item.get("proof")
    steps = [str(step) for step in proof] if isinstance(proof, list) else []
    try:
        return root_from_path(hashlib.sha256(str(item["record"]).encode()).digest(), steps)
    except ValueError:
        return "invalid proof"


def to_json_line(item: JsonObject) -> str:
    return json.dumps(item, separators=(",", ":")) + "\n"
