"""Reads a whole log and says whether it is the one that was written: every line, every link, every signature."""

from __future__ import annotations

import hashlib
import re
import time
from binascii import hexlify
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from browser_shell.audit.chain import GENESIS, Checkpoint, merkle_root, read_checkpoint, read_entry
from browser_shell.audit.query import opened_files
from browser_shell.audit.recovery import signed_checkpoint
from browser_shell.audit.signing import PublicKey
from browser_shell.audit.storage import LogFiles, read_if_there

_START = re.compile(rb'\{"prev":"[0-9a-f]{64}","seq":(\d{1,15}),"kind":"')
_CHECKPOINT = b',"kind":"CHECKPOINT",'
_CHECKPOINT_STANDS_BEFORE = 130
"""No text from outside can stand that early in a line, and none can hold a bare quotation mark."""
_MOST_PROBLEMS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that a log as it was written would not have."""

    file: str
    line: int
    """0 when no line is meant."""
    sequence: int
    what: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: record {self.sequence}: {self.what}"


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What was found."""

    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    records: int = 0
    checkpoints: int = 0
    last_signed: Checkpoint | None = None
    unsigned_records: int = 0
    """At the end, after the last checkpoint: linked, but not yet signed."""
    unfinished_bytes: int = 0
    """Of a last line without an end: a crash, or a write under way."""
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        return not self.problems


def verify_log(path: Path, *, key: PublicKey, known: Sequence[bytes] = ()) -> Verdict:
    """Checks the files of a log against `key`, its head, and checkpoints `known` from elsewhere.

    Raises: OSError when there is nothing to read.
    """
    began = time.perf_counter()
    files = LogFiles(path)
    # Before the log: it only grows, so it must hold whatever the head says now.
    head = read_if_there(files.head)
    walk = _Walk(key)
    if head is None:
        walk.add(files.head.name, 0, 0, "is missing, so a cut end would not be seen")
    else:
        walk.expect(files.head.name, head)
    for line in known:
        walk.expect("the checkpoint given", line)
    with opened_files(files) as opened:
        for name, file in opened:
            walk.read(name, file, is_last=file is opened[-1][1])
    walk.finish(files.active.name)
    walk.verdict.seconds = time.perf_counter() - began
    return walk.verdict


class _Walk:
    """Goes through the lines once."""

    def __init__(self, key: PublicKey) -> None:
        self.verdict = Verdict()
        self._key = key
        self._prev = GENESIS.encode("ascii")
        self._seq = 1
        self._first = 1
        self._leaves: list[bytes] = []
        self._unsigned: list[bytes] = []
        self._expected: dict[int, list[tuple[str, bytes]]] = {}
        self._broken = False
        """Since the last checkpoint, whose root then says nothing new."""

    def expect(self, source: str, line: bytes) -> None:
        """The log must hold this checkpoint, byte for byte."""
        checkpoint, found = signed_checkpoint(line, self._key), read_checkpoint(line)
        if checkpoint is None:
            self.add(source, 0, found.seq if found else 0, f"is no checkpoint signed by the key {self._key.key_id}")
        else:
            self._expected.setdefault(checkpoint.seq, []).append((source, line))

    def read(self, name: str, file: BinaryIO, *, is_last: bool) -> None:
        """The loop that decides how long `verify` takes: about two microseconds a line."""
        expected, sha256, leaves, unsigned = self._expected, hashlib.sha256, self._leaves, self._unsigned
        number = 0
        for number, line in enumerate(file, 1):
            if not line.startswith(b'{"prev":"%b","seq":%d,"kind":"' % (self._prev, self._seq)) or line[-1:] != b"\n":
                if is_last and line[-1:] != b"\n":
                    self.verdict.unfinished_bytes = len(line)
                    number -= 1
                    break
                self._explain(name, number, line)
            if self._seq in expected:
                self._compare(name, number, line)
            digest = sha256(line).digest()
            if line.find(_CHECKPOINT, 0, _CHECKPOINT_STANDS_BEFORE) > 0:
                self._check(name, number, line)
            else:
                unsigned.append(line)
            leaves.append(digest)
            self._prev = hexlify(digest)
            self._seq += 1
        self.verdict.files += 1
        self.verdict.records += number
        self._look_at_unsigned(name, number)

    def finish(self, name: str) -> None:
        """What can only be said at the end."""
        last = self._seq - 1
        for seq, expected in self._expected.items():
            for source, _ in expected:
                cut = f"the log ends here, and {source} says that it went on to {seq}: its end was cut"
                self.add(name, 0, last, cut if seq > last else f"checkpoint {seq}, which {source} names, is missing")
        self.verdict.unsigned_records = len(self._unsigned)

    def add(self, file: str, line: int, sequence: int, what: str) -> None:
        if len(self.verdict.problems) < _MOST_PROBLEMS:
            self.verdict.problems.append(Problem(file=file, line=line, sequence=sequence, what=what))

    def _look_at_unsigned(self, name: str, last_line: int) -> None:
        """Signed lines are as they were written. These are not signed yet, so their form is looked at too."""
        for back, line in enumerate(reversed(self._unsigned)):
            if read_entry(line) is None:
                self.add(name, last_line - back, self._seq - 1 - back, "is not a JSON object")

    def _explain(self, name: str, number: int, line: bytes) -> None:
        """Says what is wrong with a line that does not follow, and goes on from it."""
        self._broken = True
        found, wanted = _START.match(line), self._seq
        if found is None or not line.endswith(b"\n"):
            self.add(name, number, wanted, "is not a line of this log: it was changed or put here")
            return
        self._seq = int(found.group(1))
        if self._seq == wanted:
            what = "does not follow from the record before it: one of the two was changed"
        elif self._seq > wanted:
            what = f"records {wanted} to {self._seq - 1} are missing before it"
        else:
            what = f"stands where record {wanted} belongs: it was put here, moved or repeated"
        self.add(name, number, self._seq, what)

    def _compare(self, name: str, number: int, line: bytes) -> None:
        for source, known in self._expected.pop(self._seq):
            if known != line:
                self.add(name, number, self._seq, f"is not the checkpoint that {source} holds: history was rewritten")

    def _check(self, name: str, number: int, line: bytes) -> None:
        checkpoint = signed_checkpoint(line, self._key)
        previous = self.verdict.last_signed
        if checkpoint is None:
            since = f" since checkpoint {previous.seq}" if previous else ""
            what = f"is not signed by the key {self._key.key_id}: it was changed, or the records{since} were rewritten"
            self.add(name, number, self._seq, what)
        elif previous is not None and previous.log != checkpoint.log:
            self.add(name, number, self._seq, f"belongs to the log {checkpoint.log}, not to {previous.log}")
        elif not self._broken and (checkpoint.root, checkpoint.first) != (merkle_root(self._leaves), self._first):
            self.add(name, number, self._seq, "does not cover the records before it")
        self.verdict.last_signed = checkpoint or previous
        self.verdict.checkpoints += 1
        self._broken = False
        self._first = self._seq
        self._leaves.clear()
        self._unsigned.clear()
