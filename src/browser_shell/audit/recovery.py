"""Opens a log where it ended: finds the last line that counts, and refuses a log that somebody cut or changed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.audit.chain import (
    GENESIS,
    Checkpoint,
    OwnKind,
    digest_of,
    line_start,
    read_checkpoint,
    split_signature,
)
from browser_shell.audit.signing import PublicKey, SigningKey
from browser_shell.audit.storage import LogFiles, open_private, read_if_there
from browser_shell.core.errors import ConfigurationInvalid

_LINES_BEFORE_THE_HEAD = 2
"""A log has at most these, its opening and its first checkpoint, before it has a head. Nothing ran by then."""
_CHAINED = b'{"prev":"'
_ADVICE = "`browser-shell audit verify` tells more; to begin a new log, move its files elsewhere and keep them"


@dataclass(slots=True, kw_only=True)
class OpenedLog:
    """Where to go on."""

    file: int
    key: SigningKey
    log_id: str
    end: int = 0
    """Bytes of the active file that count."""
    last_sequence: int = 0
    last_sha256: str = GENESIS
    first_unsigned: int = 1
    unsigned: list[bytes] = field(default_factory=list)
    """Hashes of the lines that the next checkpoint covers."""
    torn_bytes: int = 0
    """Of a line that a crash left unfinished. Nobody was told that it was written."""


def open_log(files: LogFiles, new_id: Callable[[], str]) -> OpenedLog:
    """The caller holds the lock. Raises: ConfigurationInvalid, OSError."""
    head = read_if_there(files.head)
    if head is None:
        _set_aside_older_format(files)
    file = open_private(files.active, os.O_RDWR)
    try:
        return _begin(files, file, new_id) if head is None else _resume(files, file, head)
    except BaseException:
        os.close(file)
        raise


def signed_checkpoint(line: bytes, key: PublicKey) -> Checkpoint | None:
    """The checkpoint in a line, when this key signed it."""
    parts, checkpoint = split_signature(line), read_checkpoint(line)
    if parts is None or checkpoint is None or checkpoint.key != key.key_id or not key.has_signed(*parts):
        return None
    return checkpoint


def _begin(files: LogFiles, file: int, new_id: Callable[[], str]) -> OpenedLog:
    lines = os.pread(file, 64 * 1024, 0).count(b"\n")
    if files.rotated() or lines > _LINES_BEFORE_THE_HEAD:
        raise _damaged(files.head, "is missing, and the log has records")
    try:
        key = SigningKey.read(files.key)
    except FileNotFoundError:
        key = SigningKey.make(files.key)
    os.ftruncate(file, 0)
    return OpenedLog(file=file, key=key, log_id=new_id())


def _resume(files: LogFiles, file: int, head: bytes) -> OpenedLog:
    try:
        key = SigningKey.read(files.key)
    except FileNotFoundError as cause:
        raise _damaged(files.key, "is missing, and the log has records") from cause
    checkpoint = signed_checkpoint(head, key.public)
    if checkpoint is None:
        raise _damaged(files.head, f"is not signed with {files.key.name}")
    opened = OpenedLog(file=file, key=key, log_id=checkpoint.log)
    _step(opened, checkpoint.seq, head, is_checkpoint=True)
    size = os.fstat(file).st_size
    if size == 0:
        _require_at_end_of_rotated(files, head)
        return opened
    with mmap.mmap(file, size, prot=mmap.PROT_READ) as content:
        at = content.rfind(head)
        if at < 0:
            _require_at_end_of_rotated(files, head)
        opened.end = at + len(head) if at >= 0 else 0
        _read_on(files, opened, content)
    opened.torn_bytes = size - opened.end
    os.ftruncate(file, opened.end)
    return opened


def _read_on(files: LogFiles, opened: OpenedLog, content: mmap.mmap) -> None:
    """Goes from the head to the end of the last whole line."""
    while (line_end := content.find(b"\n", opened.end)) >= 0:
        line = content[opened.end : line_end + 1]
        start = line_start(opened.last_sha256, opened.last_sequence + 1)
        if not line.startswith(start):
            raise _damaged(files.active, f"record {opened.last_sequence + 1} does not follow from the one before")
        is_checkpoint = line.startswith(OwnKind.CHECKPOINT.value.encode() + b'"', len(start))
        if is_checkpoint and signed_checkpoint(line, opened.key.public) is None:
            raise _damaged(files.active, f"checkpoint {opened.last_sequence + 1} is not signed by us")
        _step(opened, opened.last_sequence + 1, line, is_checkpoint=is_checkpoint)
        opened.end = line_end + 1


def _step(opened: OpenedLog, sequence: int, line: bytes, *, is_checkpoint: bool) -> None:
    opened.last_sequence, opened.last_sha256 = sequence, digest_of(line)
    if is_checkpoint:
        opened.unsigned, opened.first_unsigned = [], sequence
    opened.unsigned.append(bytes.fromhex(opened.last_sha256))


def _require_at_end_of_rotated(files: LogFiles, head: bytes) -> None:
    """A full file ends with a checkpoint, so the head is its last line until the new file has one."""
    rotated = files.rotated()
    if rotated:
        with rotated[-1].open("rb") as full:
            full.seek(max(0, full.seek(0, os.SEEK_END) - len(head)))
            if full.read() == head:
                return
    raise _damaged(files.active, f"does not hold its latest checkpoint, which {files.head.name} names: it was cut")


def _set_aside_older_format(files: LogFiles) -> None:
    """Lines without a chain, from before version 0.2, prove nothing: they are kept under another name."""
    content = read_if_there(files.active) if files.active.is_file() and not files.active.is_symlink() else None
    if content and not files.key.exists() and not content.startswith(_CHAINED):
        target = files.active.with_suffix(".unchained")
        if target.exists():
            raise _damaged(files.active, "is not a log of ours")
        files.active.rename(target)
    elif content and not files.key.exists():
        raise _damaged(files.key, "is missing, and the log has records")


def _damaged(path: Path, what: str) -> ConfigurationInvalid:
    return ConfigurationInvalid(f"audit log: {path} {what}. {_ADVICE}")
