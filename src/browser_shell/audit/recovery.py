"""Open a log at its end, after a stop or a crash. A log that was cut or changed is refused."""

from __future__ import annotations

import mmap
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.audit.chain import GENESIS, OwnKind, digest_of, line_start
from browser_shell.audit.signing import SigningKey, signed_checkpoint
from browser_shell.audit.storage import LogFiles, open_private, read_if_exists
from browser_shell.core.errors import ConfigurationInvalid

_MAX_LINES_WITHOUT_HEAD = 2
"""The opening record and the first checkpoint are written before the head, and no call runs before that."""
_CHAINED = b'{"prev":"'
_ADVICE = "`browser-shell audit verify` shows details; to start a new log, move its files elsewhere and keep them"


@dataclass(slots=True, kw_only=True)
class OpenedLog:
    """The end of a log, where the next line goes."""

    file: int
    key: SigningKey
    log_id: str
    end: int = 0
    """Valid bytes of the active file."""
    last_sequence: int = 0
    last_sha256: str = GENESIS
    first_unsigned: int = 1
    unsigned: list[bytes] = field(default_factory=list)
    """Hashes of the lines that the next checkpoint covers."""
    torn_bytes: int = 0
    """Size of an incomplete last line, which was never acknowledged."""

    @property
    def unsigned_records(self) -> int:
        """Number of records since the last checkpoint."""
        return self.last_sequence - self.first_unsigned

    def advance(self, line: bytes, *, is_checkpoint: bool) -> None:
        """Count a line that follows the last one."""
        self.last_sequence, self.last_sha256 = self.last_sequence + 1, digest_of(line)
        if is_checkpoint:
            self.unsigned, self.first_unsigned = [], self.last_sequence
        self.unsigned.append(bytes.fromhex(self.last_sha256))


def open_log(files: LogFiles) -> OpenedLog:
    """Open the log; the caller holds the lock. Raises: ConfigurationInvalid, OSError."""
    head = read_if_exists(files.head)
    if head is None:
        _set_aside_unchained_log(files)
    file = open_private(files.active)
    try:
        return _start_log(files, file) if head is None else _resume_log(files, file, head)
    except BaseException:
        os.close(file)
        raise


def _start_log(files: LogFiles, file: int) -> OpenedLog:
    lines = os.pread(file, 64 * 1024, 0).count(b"\n")
    if files.rotated() or lines > _MAX_LINES_WITHOUT_HEAD:
        raise _damaged(files.head, "is missing, and the log has records")
    key = SigningKey.read_if_exists(files.key) or SigningKey.generate(files.key)
    os.ftruncate(file, 0)
    return OpenedLog(file=file, key=key, log_id=secrets.token_hex(8))


def _resume_log(files: LogFiles, file: int, head: bytes) -> OpenedLog:
    key = SigningKey.read_if_exists(files.key)
    if key is None:
        raise _damaged(files.key, "is missing, and the log has records")
    checkpoint = signed_checkpoint(head, key.public)
    if checkpoint is None:
        raise _damaged(files.head, f"is not signed with {files.key.name}")
    opened = OpenedLog(file=file, key=key, log_id=checkpoint.log, last_sequence=checkpoint.seq - 1)
    opened.advance(head, is_checkpoint=True)
    size = os.fstat(file).st_size
    if size == 0:
        _require_at_end_of_rotated(files, head)
        return opened
    with mmap.mmap(file, size, prot=mmap.PROT_READ) as content:
        at = content.rfind(head)
        if at < 0:
            _require_at_end_of_rotated(files, head)
        opened.end = at + len(head) if at >= 0 else 0
        _read_after_head(files, opened, content)
    opened.torn_bytes = size - opened.end
    os.ftruncate(file, opened.end)
    return opened


def _read_after_head(files: LogFiles, opened: OpenedLog, content: mmap.mmap) -> None:
    """Advance from the head to the end of the last complete line."""
    while (line_end := content.find(b"\n", opened.end)) >= 0:
        line, sequence = content[opened.end : line_end + 1], opened.last_sequence + 1
        start = line_start(opened.last_sha256, sequence)
        if not line.startswith(start):
            raise _damaged(files.active, f"record {sequence} does not follow from the record before it")
        is_checkpoint = line.startswith(OwnKind.CHECKPOINT.value.encode() + b'"', len(start))
        if is_checkpoint and signed_checkpoint(line, opened.key.public) is None:
            raise _damaged(files.active, f"checkpoint {sequence} is not signed with {files.key.name}")
        opened.advance(line, is_checkpoint=is_checkpoint)
        opened.end = line_end + 1


def _require_at_end_of_rotated(files: LogFiles, head: bytes) -> None:
    """Accept a head that is the last line of the latest full file: a full file ends with a checkpoint."""
    rotated = files.rotated()
    if rotated:
        with rotated[-1].open("rb") as full:
            full.seek(max(0, full.seek(0, os.SEEK_END) - len(head)))
            if full.read() == head:
                return
    raise _damaged(files.active, f"does not contain the checkpoint in {files.head.name}: the log was cut")


def _set_aside_unchained_log(files: LogFiles) -> None:
    """Rename a log from before version 0.2, whose lines are not chained."""
    content = read_if_exists(files.active)
    if not content or files.key.exists():
        return
    if content.startswith(_CHAINED):
        raise _damaged(files.key, "is missing, and the log has records")
    target = files.active.with_suffix(".unchained")
    if target.exists():
        raise _damaged(files.active, "is not an audit log")
    files.active.rename(target)


def _damaged(path: Path, problem: str) -> ConfigurationInvalid:
    return ConfigurationInvalid(f"audit log: {path} {problem}. {_ADVICE}")
