"""The format of the log: members of records, lines linked by hashes, checkpoints, and Merkle proofs."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import TypeAlias

from browser_shell.core.json_values import JsonValue
from browser_shell.core.records import AuditRecord

GENESIS = "0" * 64
"""`prev` of the first line."""

Members: TypeAlias = Mapping[str, str | int | float | bool]

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False).encode
_SIGNATURE = b',"signature":"'
_SIGNED_AS = b"browser-shell audit checkpoint 1\n"
"""Domain separation: a signature made for another purpose is not a valid checkpoint."""
_MAX_VALUE_CHARACTERS = 512
_FIELDS = tuple(field.name for field in fields(AuditRecord) if field.name not in {"kind", "text", "durable"})
# Defence in depth: no caller puts these into a record.
_SECRET = re.compile(
    r"[?&;][\w.%\[\]-]{1,64}="  # a query string
    r"|\beyJ[\w-]{8,}\.[\w-]{4,}"  # a JSON web token
    r"|\b(?i:bearer|basic)\s+[\w.~+/-]{8,}"
    r"|\b(?i:set-cookie|cookie|authorization)\s*:"
    r"|://[^/\s@]*@"  # a password in a URL
)


class OwnKind(Enum):
    """Records that the log writes about itself."""

    AUDIT_OPENED = "AUDIT_OPENED"
    AUDIT_RESUMED = "AUDIT_RESUMED"
    """Written after a period in which the log could not be written."""
    AUDIT_CLOSED = "AUDIT_CLOSED"
    CHECKPOINT = "CHECKPOINT"


def serialise_record(record: AuditRecord, *, text_key: bytes) -> dict[str, str | int | float]:
    """Return the members of a record, without empty ones. Typed text becomes its length and its HMAC.

    This is the last point at which a secret can be kept out of the log.
    """
    values = ((name, getattr(record, name)) for name in _FIELDS)
    members: dict[str, str | int | float] = {
        name: sanitise_value(value) if isinstance(value, str) else value
        for name, value in values
        if value not in (None, "")
    }
    if record.text is not None:
        text = record.text.reveal()
        members["text_length"] = len(text)
        members["text_hmac"] = hmac.digest(text_key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
    return members


def sanitise_value(value: str) -> str:
    """Return a value as the log contains it: secrets withheld, long values cut."""
    if _SECRET.search(value):
        return f"[withheld: {len(value)} characters]"
    if len(value) > _MAX_VALUE_CHARACTERS:
        return f"{value[:_MAX_VALUE_CHARACTERS]}[{len(value) - _MAX_VALUE_CHARACTERS} characters cut]"
    return value


def compose(*, prev: str, seq: int, kind: str, time: str, members: Members) -> bytes:
    """Compose a line. The order of the first three members is part of the format: `verify` compares them as bytes."""
    entry = {"prev": prev, "seq": seq, "kind": kind, "time": time, **members}
    return _encode(entry).encode("ascii") + b"\n"


def line_start(prev: str, seq: int) -> bytes:
    """Return how line `seq` must start if the line before it has the hash `prev`."""
    return b'{"prev":"%b","seq":%d,"kind":"' % (prev.encode("ascii"), seq)


def digest_of(line: bytes) -> str:
    """Hash a line for `prev` of the next one: SHA-256 of its bytes, line end included."""
    return hashlib.sha256(line).hexdigest()


def add_signature(unsigned: bytes, signature: bytes) -> bytes:
    """Complete a checkpoint line."""
    return unsigned[:-2] + _SIGNATURE + signature.hex().encode("ascii") + b'"}\n'


def signed_part(unsigned: bytes) -> bytes:
    return _SIGNED_AS + unsigned


def split_signature(line: bytes) -> tuple[bytes, bytes] | None:
    """Split a checkpoint into the signed bytes and the signature; None for a line of another form."""
    body, mark, rest = line.rpartition(_SIGNATURE)
    try:
        signature = bytes.fromhex(rest.removesuffix(b'"}\n').decode("ascii"))
    except ValueError:
        return None
    # Only the canonical spelling is valid, so that no byte of the line can be changed.
    if not mark or rest != signature.hex().encode("ascii") + b'"}\n':
        return None
    return signed_part(body + b"}\n"), signature


def merkle_root(leaves: Sequence[bytes]) -> str:
    """Compute the root over the hashes of lines, so that a line can be proven without the others.

    As in RFC 6962, an unpaired node moves up unchanged. Lines start with a brace and inner nodes with the byte 1, so
    that neither can be mistaken for the other.
    """
    row = list(leaves)
    while len(row) > 1:
        row = _row_above(row)
    return row[0].hex() if row else GENESIS


def merkle_path(leaves: Sequence[bytes], index: int) -> list[str]:
    """List the sibling hashes from a leaf to the root, prefixed `L` or `R` by their side."""
    row, path = list(leaves), []
    while len(row) > 1:
        sibling = index ^ 1
        if sibling < len(row):
            path.append(("L" if sibling < index else "R") + row[sibling].hex())
        row, index = _row_above(row), index // 2
    return path


def root_from_path(leaf: bytes, path: Sequence[str]) -> str:
    """Raises: ValueError for an invalid step."""
    node = leaf
    for step in path:
        sibling = bytes.fromhex(step[1:])
        if step[:1] not in {"L", "R"} or len(sibling) != hashlib.sha256().digest_size:
            raise ValueError("not a step of a proof")
        pair = sibling + node if step[0] == "L" else node + sibling
        node = hashlib.sha256(b"\x01" + pair).digest()
    return node.hex()


def _row_above(row: list[bytes]) -> list[bytes]:
    sha256 = hashlib.sha256
    above = [sha256(b"\x01" + row[at] + row[at + 1]).digest() for at in range(0, len(row) - 1, 2)]
    return above + row[-1:] if len(row) % 2 else above


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A signed statement about the lines of a log since the checkpoint before."""

    seq: int
    time: str
    log: str
    key: str
    first: int
    """Number of the first line that `root` covers; the last one is `seq - 1`."""
    root: str


def read_checkpoint(line: bytes) -> Checkpoint | None:
    """Parse a checkpoint without checking its signature; None for any other line."""
    entry = read_entry(line)
    if entry is None or entry.get("kind") != OwnKind.CHECKPOINT.value:
        return None
    seq, first = entry.get("seq"), entry.get("first")
    if not isinstance(seq, int) or not isinstance(first, int):
        return None
    values = [entry.get(name) for name in ("time", "log", "key", "root")]
    time, log, key, root = (value if isinstance(value, str) else "" for value in values)
    return Checkpoint(seq=seq, time=time, log=log, key=key, first=first, root=root)


def read_entry(line: bytes) -> dict[str, JsonValue] | None:
    """Parse a line; None if it is not a JSON object."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
