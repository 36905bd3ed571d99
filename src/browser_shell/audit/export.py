"""Some records of a log as JSON lines, each with a proof that the log's key signed it. The others stay undisclosed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from browser_shell.audit.chain import OwnKind, merkle_path, read_entry, root_from_path
from browser_shell.audit.query import Entry, Selection, read_entries
from browser_shell.audit.recovery import signed_checkpoint
from browser_shell.audit.signing import PublicKey
from browser_shell.audit.verify import Problem
from browser_shell.core.json_values import JsonObject, JsonValue

FORMAT = "browser-shell audit export 1"


def export_records(path: Path, selection: Selection, *, key: PublicKey) -> Iterator[JsonObject]:
    """A header, then records and the checkpoints that cover them. Raises: OSError."""
    wanted: JsonObject = {
        name: getattr(selection, name) for name in ("since", "until", "subject", "session") if getattr(selection, name)
    }
    yield {"export": FORMAT, "public_key": key.pem().decode("ascii"), "key": key.key_id, "selection": wanted}
    batch: list[Entry] = []
    for entry in read_entries(path):
        if entry.word("kind") == OwnKind.CHECKPOINT.value:
            yield from _covered(batch, entry, selection)
            batch = []
        batch.append(entry)
    for entry in batch:
        if _is_wanted(entry, selection):
            yield {**_named(entry), "checkpoint": None}


def check_export(lines: Iterable[bytes], *, key: PublicKey) -> tuple[int, list[Problem]]:
    """How many records an export proves, and what is wrong with it."""
    problems: list[Problem] = []
    roots: dict[int, str] = {}
    proven = 0

    def wrong(number: int, seq: int, what: str) -> None:
        problems.append(Problem(file="export", line=number, sequence=seq, what=what))

    for number, line in enumerate(lines, 1):
        item = read_entry(line) or {}
        if item.get("export") == FORMAT:
            continue
        if isinstance(item.get("signed"), str):
            checkpoint = signed_checkpoint(str(item["signed"]).encode(), key)
            if checkpoint is None:
                wrong(number, 0, f"is no checkpoint signed by the key {key.key_id}")
            else:
                roots[checkpoint.seq] = checkpoint.root
            continue
        record, covered_by = read_entry(str(item.get("record", "")).encode()), item.get("checkpoint")
        seq = record.get("seq") if record else None
        if not isinstance(seq, int):
            wrong(number, 0, "is not a record")
        elif covered_by is None:
            wrong(number, seq, "no checkpoint covers it yet: export again later")
        elif not isinstance(covered_by, int) or _root(item) != roots.get(covered_by, ""):
            wrong(number, seq, "its proof does not lead to a signed checkpoint")
        else:
            proven += 1
    return proven, problems


def _covered(batch: list[Entry], checkpoint: Entry, selection: Selection) -> Iterator[JsonObject]:
    chosen = [at for at, entry in enumerate(batch) if _is_wanted(entry, selection)]
    if not chosen:
        return
    # Before its records, so that an export can be checked in one pass.
    yield {"signed": checkpoint.raw.decode("ascii")}
    leaves = [hashlib.sha256(entry.raw).digest() for entry in batch]
    for at in chosen:
        proof: list[JsonValue] = list(merkle_path(leaves, at))
        yield {**_named(batch[at]), "checkpoint": checkpoint.members["seq"], "proof": proof}


def _is_wanted(entry: Entry, selection: Selection) -> bool:
    return entry.word("kind") != OwnKind.CHECKPOINT.value and selection.takes(entry)


def _named(entry: Entry) -> JsonObject:
    # As text, with its line end: the proof is about these bytes, not about what another writer would make of them.
    return {"file": entry.file, "line": entry.line, "record": entry.raw.decode("utf-8", "replace")}


def _root(item: dict[str, JsonValue]) -> str:
    proof = item.get("proof")
    steps = [str(step) for step in proof] if isinstance(proof, list) else []
    try:
        return root_from_path(hashlib.sha256(str(item["record"]).encode()).digest(), steps)
    except ValueError:
        return "not a proof"


def as_json_line(item: JsonObject) -> str:
    return json.dumps(item, separators=(",", ":")) + "\n"
