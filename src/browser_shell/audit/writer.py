"""Write lines and checkpoints, and rotate files. Everything runs in one thread, except `Flush.run`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from browser_shell.audit.chain import Members, OwnKind, add_signature, compose, merkle_root, signed_part
from browser_shell.audit.recovery import OpenedLog
from browser_shell.audit.storage import LogFiles
from browser_shell.core.records import Receipt
from browser_shell.process.files import replace_file, sync_directory

_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Makes the log durable up to `sequence`."""

    file: int
    end: int
    sequence: int
    head: bytes | None
    """A new head. It must reach the disk after the log, which has to contain it."""
    head_path: Path

    def run(self) -> None:
        """Raises: OSError."""
        os.fdatasync(self.file)
        if self.head is not None:
            replace_file(self.head_path, self.head)


class ChainWriter:
    """Appends to the end of a log."""

    def __init__(self, files: LogFiles, opened: OpenedLog) -> None:
        self._files = files
        self.log = opened
        self._synced = opened.end
        self._unsynced = bytearray()
        """Bytes since the last successful flush. After a failed one the kernel drops them."""
        self._must_rewrite = False
        """Whether a flush was begun and did not succeed, so that `_unsynced` has to be written again."""
        self._is_torn = False
        """Whether bytes beyond the end must be removed before the next line."""
        self._new_head: bytes | None = None
        self.durable_sequence = 0

    @property
    def unsynced_bytes(self) -> int:
        return len(self._unsynced)

    @property
    def has_new_head(self) -> bool:
        return self._new_head is not None

    def append(self, kind: str, time: str, members: Members) -> Receipt:
        """Raises: OSError; then nothing was written."""
        line = self._compose(kind, time, members)
        self._write(line)
        self.log.advance(line, is_checkpoint=False)
        return Receipt(sequence=self.log.last_sequence, sha256=self.log.last_sha256)

    def checkpoint(self, time: str) -> None:
        """Sign the end of the log. Raises: OSError; then nothing was written."""
        log, key = self.log, self.log.key
        members: Members = {
            "log": log.log_id,
            "key": key.public.key_id,
            "first": log.first_unsigned,
            "root": merkle_root(log.unsigned),
        }
        unsigned = self._compose(OwnKind.CHECKPOINT.value, time, members)
        line = add_signature(unsigned, key.sign(signed_part(unsigned)))
        self._write(line)
        log.advance(line, is_checkpoint=True)
        self._new_head = line

    def begin_flush(self) -> Flush:
        """Raises: OSError."""
        self._require_in_place()
        if self._must_rewrite:
            _write_at(self.log.file, self._unsynced, self._synced)
        self._must_rewrite = True
        return Flush(
            file=self.log.file,
            end=self.log.end,
            sequence=self.log.last_sequence,
            head=self._new_head,
            head_path=self._files.head,
        )

    def flushed(self, flush: Flush) -> None:
        del self._unsynced[: flush.end - self._synced]
        self._synced, self.durable_sequence = flush.end, flush.sequence
        self._must_rewrite = False
        if self._new_head is flush.head:
            self._new_head = None

    def flush_now(self) -> None:
        """Raises: OSError."""
        flush = self.begin_flush()
        flush.run()
        self.flushed(flush)

    def rotate(self, time: str) -> None:
        """Start a new file. No flush may be running. Raises: OSError; then the old file stays in use."""
        self.checkpoint(time)
        self.flush_now()
        files = self._files
        target = files.next_rotated()
        fresh = os.open(files.next, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            files.active.rename(target)
            # After a crash at this point there is no active file. The next start creates one that continues the chain.
            try:
                files.next.rename(files.active)
            except OSError:
                target.rename(files.active)
                raise
            sync_directory(files.active.parent)
        except OSError:
            os.close(fresh)
            raise
        os.close(self.log.file)
        self.log.file, self.log.end, self._synced = fresh, 0, 0

    def close(self) -> None:
        os.close(self.log.file)

    def _compose(self, kind: str, time: str, members: Members) -> bytes:
        log = self.log
        return compose(prev=log.last_sha256, seq=log.last_sequence + 1, kind=kind, time=time, members=members)

    def _write(self, line: bytes) -> None:
        log = self.log
        if self._is_torn:
            os.ftruncate(log.file, log.end)
            self._is_torn = False
        if os.fstat(log.file).st_size != log.end:
            raise OSError(errno.ESTALE, "the audit log was cut or written to by another program")
        try:
            _write_at(log.file, line, log.end)
        except OSError:
            self._is_torn = True
            with contextlib.suppress(OSError):
                os.ftruncate(log.file, log.end)
                self._is_torn = False
            raise
        log.end += len(line)
        self._unsynced += line

    def _require_in_place(self) -> None:
        """Fail if the file was removed or replaced: records in it would be lost."""
        if not os.path.samestat(os.fstat(self.log.file), self._files.active.lstat()):
            raise OSError(errno.ESTALE, "the audit log was moved or replaced while in use")


class FsyncThread:
    """Run flushes one after another in a daemon thread, which starts with the log."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], None], Future[None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread unless it runs. Raises: OSError when the machine has no thread left."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="audit-fsync", daemon=True)
            try:
                thread.start()
            except RuntimeError as cause:
                raise OSError(errno.EAGAIN, "no thread to flush the audit log") from cause
            self._thread = thread

    async def run(self, function: Callable[[], None]) -> None:
        """Wait for a function. Raises: OSError as `start` does; any exception of the function."""
        self.start()
        future: Future[None] = Future()
        self._queue.put((function, future))
        await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Wait for running functions, but not for a disk that hangs."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(_STOP_SECONDS)
            self._thread = None

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            function, future = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                function()
            except BaseException as error:  # noqa: BLE001  raised again in the waiting task
                future.set_exception(error)
            else:
                future.set_result(None)


def _write_at(file: int, content: bytes | bytearray, offset: int) -> None:
    if os.pwrite(file, content, offset) != len(content):
        raise OSError(errno.ENOSPC, "incomplete write")
