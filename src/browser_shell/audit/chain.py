"""The bytes of the log: what a line looks like, how it names the one before, and what a checkpoint signs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from browser_shell.core.json_values import JsonValue

GENESIS = "0" * 64
"""What the first line names as the line before it."""
LONGEST_LINE_BYTES = 64 * 1024

Members: TypeAlias = Mapping[str, str | int | float | bool]

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False).encode
_SIGNATURE = b',"signature":"'
_SIGNED_AS = b"browser-shell audit checkpoint 1\n"
"""Says what the signature is for, so that none made for another purpose fits."""


class OwnKind(Enum):
    """Records that the log writes about itself."""

    AUDIT_OPENED = "AUDIT_OPENED"
    AUDIT_RESUMED = "AUDIT_RESUMED"
    """Follows a time in which the log could not be written."""
    AUDIT_CLOSED = "AUDIT_CLOSED"
    CHECKPOINT = "CHECKPOINT"


def compose(*, prev: str, seq: int, kind: str, time: str, members: Members) -> bytes:
    """One line. The order of the first three members is part of the format: `verify` reads them as bytes."""
    entry = {"prev": prev, "seq": seq, "kind": kind, "time": time, **members}
    return _encode(entry).encode("ascii") + b"\n"


def line_start(prev: str, seq: int) -> bytes:
    """How the line with this number must begin when the line before it has the hash `prev`."""
    return b'{"prev":"%b","seq":%d,"kind":"' % (prev.encode("ascii"), seq)


def digest_of(line: bytes) -> str:
    """The hash by which the next line names this one: SHA-256 of its bytes, line end included."""
    return hashlib.sha256(line).hexdigest()


def add_signature(unsigned: bytes, signature: bytes) -> bytes:
    """The finished checkpoint line."""
    return unsigned[:-2] + _SIGNATURE + signature.hex().encode("ascii") + b'"}\n'


def signed_part(unsigned: bytes) -> bytes:
    return _SIGNED_AS + unsigned


def split_signature(line: bytes) -> tuple[bytes, bytes] | None:
    """The bytes that a checkpoint signs, and its signature; None when the line does not have that form."""
    body, mark, rest = line.rpartition(_SIGNATURE)
    try:
        signature = bytes.fromhex(rest.removesuffix(b'"}\n').decode("ascii"))
    except ValueError:
        return None
    # Of all spellings of one signature, one is right: a changed byte must not go unseen.
    if not mark or rest != signature.hex().encode("ascii") + b'"}\n':
        return None
    return signed_part(body + b"}\n"), signature


def merkle_root(leaves: Sequence[bytes]) -> str:
    """One hash over the hashes of the lines since the last checkpoint, so that one line can be proven without the rest.

    A lone node at the end of a row moves up as it is, as in RFC 6962. Lines begin with a brace and inner nodes with 1,
    so neither can pose as the other.
    """
    row = list(leaves)
    while len(row) > 1:
        row = _row_above(row)
    return row[0].hex() if row else GENESIS


def merkle_path(leaves: Sequence[bytes], index: int) -> list[str]:
    """The hashes that lead from one leaf to the root: `L…` stands left of what is known so far, `R…` right of it."""
    row, path = list(leaves), []
    while len(row) > 1:
        beside = index ^ 1
        if beside < len(row):
            path.append(("L" if beside < index else "R") + row[beside].hex())
        row, index = _row_above(row), index // 2
    return path


def root_from_path(leaf: bytes, path: Sequence[str]) -> str:
    """Raises: ValueError for a step that is none."""
    node = leaf
    for step in path:
        beside = bytes.fromhex(step[1:])
        if step[:1] not in {"L", "R"} or len(beside) != hashlib.sha256().digest_size:
            raise ValueError("not a step of a proof")
        pair = beside + node if step[0] == "L" else node + beside
        node = hashlib.sha256(b"\x01" + pair).digest()
    return node.hex()


def _row_above(row: list[bytes]) -> list[bytes]:
    sha256 = hashlib.sha256
    above = [sha256(b"\x01" + row[at] + row[at + 1]).digest() for at in range(0, len(row) - 1, 2)]
    return above + row[-1:] if len(row) % 2 else above


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A signed statement: the log `log` had these lines, and this many."""

    seq: int
    time: str
    log: str
    key: str
    first: int
    """Number of the first line below `root`; the last one is `seq - 1`."""
    root: str
    line: bytes


def read_checkpoint(line: bytes) -> Checkpoint | None:
    """The checkpoint in a line, its signature not yet checked; None when the line is something else."""
    entry = read_entry(line)
    if entry is None or entry.get("kind") != OwnKind.CHECKPOINT.value:
        return None
    seq, first = entry.get("seq"), entry.get("first")
    words = [entry.get(name) for name in ("time", "log", "key", "root")]
    if not isinstance(seq, int) or not isinstance(first, int):
        return None
    time, log, key, root = (word if isinstance(word, str) else "" for word in words)
    return Checkpoint(seq=seq, time=time, log=log, key=key, first=first, root=root, line=line)


def read_entry(line: bytes) -> dict[str, JsonValue] | None:
    """The members of a line; None when it is not a JSON object."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
