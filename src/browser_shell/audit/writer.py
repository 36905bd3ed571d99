"""Writes lines, checkpoints and new files. Belongs to one thread; only a `Flush` may run in another."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from browser_shell.audit.chain import Members, OwnKind, add_signature, compose, digest_of, merkle_root, signed_part
from browser_shell.audit.recovery import OpenedLog
from browser_shell.audit.storage import LogFiles, open_private
from browser_shell.core.records import Receipt
from browser_shell.process.atomic_file import replace_file, sync_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Makes everything up to `sequence` durable."""

    file: int
    end: int
    sequence: int
    head: bytes | None
    """A checkpoint that is to become the head. It follows the log to the disk, never the other way round."""
    head_path: Path

    def run(self) -> None:
        """Raises: OSError."""
        os.fdatasync(self.file)
        if self.head is not None:
            replace_file(self.head_path, self.head)


class ChainWriter:
    """The end of the log."""

    def __init__(self, files: LogFiles, opened: OpenedLog) -> None:
        self._files = files
        self._at = opened
        self._synced = opened.end
        self._unsynced = bytearray()
        """What the disk may not have. Written again after a failed flush: the kernel forgets what it did not write."""
        self._flush_failed = False
        self._torn = False
        """Whether bytes beyond the end must go before the next line."""
        self._new_head: bytes | None = None
        self.durable_sequence = 0

    @property
    def size(self) -> int:
        return self._at.end

    @property
    def last_sequence(self) -> int:
        return self._at.last_sequence

    @property
    def unsigned_records(self) -> int:
        """Records since the last checkpoint."""
        return self._at.last_sequence - self._at.first_unsigned

    @property
    def unsynced_bytes(self) -> int:
        return len(self._unsynced)

    @property
    def head_waits(self) -> bool:
        return self._new_head is not None

    def append(self, kind: str, time: str, members: Members) -> Receipt:
        """Raises: OSError; then nothing was written."""
        at = self._at
        line = compose(prev=at.last_sha256, seq=at.last_sequence + 1, kind=kind, time=time, members=members)
        self._put(line)
        at.last_sequence, at.last_sha256 = at.last_sequence + 1, digest_of(line)
        at.unsigned.append(bytes.fromhex(at.last_sha256))
        return Receipt(sequence=at.last_sequence, sha256=at.last_sha256)

    def checkpoint(self, time: str) -> None:
        """Signs the end of the log. Raises: OSError; then nothing was written."""
        at, key = self._at, self._at.key
        covered: Members = {
            "log": at.log_id,
            "key": key.public.key_id,
            "first": at.first_unsigned,
            "root": merkle_root(at.unsigned),
        }
        sequence = at.last_sequence + 1
        unsigned = compose(prev=at.last_sha256, seq=sequence, kind=OwnKind.CHECKPOINT.value, time=time, members=covered)
        line = add_signature(unsigned, key.sign(signed_part(unsigned)))
        self._put(line)
        at.last_sequence, at.last_sha256, at.first_unsigned = sequence, digest_of(line), sequence
        at.unsigned = [bytes.fromhex(at.last_sha256)]
        self._new_head = line

    def begin_flush(self) -> Flush:
        """Raises: OSError."""
        self._require_in_place()
        if self._flush_failed:
            _write_whole(self._at.file, self._unsynced, self._synced)
        return Flush(
            file=self._at.file,
            end=self._at.end,
            sequence=self._at.last_sequence,
            head=self._new_head,
            head_path=self._files.head,
        )

    def flushed(self, flush: Flush) -> None:
        del self._unsynced[: flush.end - self._synced]
        self._synced, self.durable_sequence = flush.end, flush.sequence
        self._flush_failed = False
        if self._new_head is flush.head:
            self._new_head = None

    def flush_failed(self) -> None:
        self._flush_failed = True

    def flush_now(self) -> None:
        """Raises: OSError."""
        flush = self.begin_flush()
        try:
            flush.run()
        except OSError:
            self.flush_failed()
            raise
        self.flushed(flush)

    def rotate(self, time: str) -> None:
        """Begins a new file. No flush may be under way. Raises: OSError; then the old file goes on."""
        self.checkpoint(time)
        self.flush_now()
        target = self._files.next_rotated()
        fresh = os.open(self._files.next, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            self._files.active.rename(target)
            # A crash here leaves no active file. The next start makes one, and goes on from the full one.
            try:
                self._files.next.rename(self._files.active)
            except OSError:
                target.rename(self._files.active)
                raise
            sync_directory(self._files.active.parent)
        except OSError:
            os.close(fresh)
            raise
        os.close(self._at.file)
        self._at.file, self._at.end, self._synced = fresh, 0, 0

    def close(self) -> None:
        os.close(self._at.file)

    def _put(self, line: bytes) -> None:
        if self._torn:
            os.ftruncate(self._at.file, self._at.end)
            self._torn = False
        if os.fstat(self._at.file).st_size != self._at.end:
            raise OSError(errno.ESTALE, "the audit log was cut or written to by another program")
        try:
            _write_whole(self._at.file, line, self._at.end)
        except OSError:
            self._torn = True
            with contextlib.suppress(OSError):
                os.ftruncate(self._at.file, self._at.end)
                self._torn = False
            raise
        self._at.end += len(line)
        self._unsynced += line

    def _require_in_place(self) -> None:
        """What is written to a file that was removed or replaced is lost, so it counts as not written."""
        ours, named = os.fstat(self._at.file), self._files.active.lstat()
        if (ours.st_dev, ours.st_ino) != (named.st_dev, named.st_ino):
            raise OSError(errno.ESTALE, "the audit log was moved or replaced while in use")


def _write_whole(file: int, content: bytes | bytearray, at: int) -> None:
    if os.pwrite(file, content, at) != len(content):
        raise OSError(errno.ENOSPC, "written in part")


def claim(path: Path) -> int:
    """The right to write. Raises: OSError when another server has it; ConfigurationInvalid."""
    lock = open_private(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
