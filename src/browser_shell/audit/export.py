"""Export selected records as JSON lines. Each has a proof that the log's key signed it, without the other records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from browser_shell.audit.chain import OwnKind, merkle_path, read_entry, root_from_path
from browser_shell.audit.query import Entry, Selection, read_entries
from browser_shell.audit.signing import PublicKey, signed_checkpoint
from browser_shell.audit.verify import Problem
from browser_shell.core.json_values import JsonObject, JsonValue

FORMAT = "browser-shell audit export 1"


def export_records(path: Path, selection: Selection, *, key: PublicKey) -> Iterator[JsonObject]:
    """Yield a header, then checkpoints, each followed by the records that it covers. Raises: OSError."""
    filters: JsonObject = {
        name: getattr(selection, name) for name in ("since", "until", "subject", "session") if getattr(selection, name)
    }
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
