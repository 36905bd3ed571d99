"""The audit log: chained JSON lines by one writer, on the disk before the act that they announce."""

from __future__ import annotations

import errno
import os
import secrets
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import structlog

from browser_shell.audit.chain import Members, OwnKind
from browser_shell.audit.fsync_thread import Flusher, Order
from browser_shell.audit.recovery import OpenedLog, open_log
from browser_shell.audit.serialise import serialise_record
from browser_shell.audit.storage import LogFiles, require_file_or_nothing
from browser_shell.audit.writer import ChainWriter, claim
from browser_shell.core.errors import AuditUnavailable, ConfigurationInvalid
from browser_shell.core.ports import Clock, NewId
from browser_shell.core.records import AuditRecord, Receipt, utc_timestamp
from browser_shell.process.atomic_file import replace_file

ROTATE_BYTES = 32 * 1024 * 1024
CHECKPOINT_RECORDS = 500
CHECKPOINT_SECONDS = 30.0
_MOST_UNSYNCED_BYTES = 256 * 1024
_MOST_OWED_RECORDS = 1024

log = structlog.get_logger()


def _random_id() -> str:
    return secrets.token_hex(8)


class JsonLinesAudit:
    """Evidence of every call, in files that only their owner can read. Belongs to one event loop."""

    def __init__(
        self,
        *,
        path: Path,
        clock: Clock,
        policy_digest: str = "",
        rotate_bytes: int = ROTATE_BYTES,
        checkpoint_records: int = CHECKPOINT_RECORDS,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        new_id: NewId = _random_id,
    ) -> None:
        """Raises: ConfigurationInvalid when the log cannot be opened, was cut, or another server writes to it."""
        self._files = LogFiles(path)
        self._clock = clock
        self._stamp: Members = {"policy_digest": policy_digest} if policy_digest else {}
        self._rotate_bytes = self._rotate_at = rotate_bytes
        self._checkpoint_records = checkpoint_records
        self._checkpoint_seconds = checkpoint_seconds
        self._owed: deque[tuple[str, AuditRecord]] = deque(maxlen=_MOST_OWED_RECORDS)
        """Ends that could not be written when they happened."""
        self._refused_records = 0
        self._flushing: anyio.Event | None = None
        """Set when the flush that runs now is over."""
        self._flusher = Flusher()
        # Before anything is made beside it.
        require_file_or_nothing(path)
        try:
            self._lock = claim(self._files.lock)
        except OSError as cause:
            raise ConfigurationInvalid(f"audit log {path}: another server writes to it") from cause
        try:
            opened = open_log(self._files, new_id)
            self._text_key = opened.key.text_key()
            self._writer = ChainWriter(self._files, opened)
            self._begin(opened)
        except OSError as cause:
            os.close(self._lock)
            raise ConfigurationInvalid(f"audit log {path}: cannot be written: {cause.strerror}") from cause
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        with suppress(RuntimeError):  # It is tried again when there is something to flush.
            self._flusher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._flusher.stop()
        try:
            self._settle()
            self._writer.append(OwnKind.AUDIT_CLOSED.value, self._now(), self._stamp)
            self._sign()
            self._writer.flush_now()
        except OSError:
            log.exception("audit_not_closed")
        finally:
            self._writer.close()
            os.close(self._lock)

    async def record(self, record: AuditRecord) -> None:
        """Raises: AuditUnavailable."""
        await self.append(record)

    async def append(self, record: AuditRecord) -> Receipt:
        """Like `record`, for evidence that names its record. Raises: AuditUnavailable."""
        try:
            # Without an await in between, lines and their numbers have one order.
            receipt = self._write(record)
            self._sign_when_due()
            full = self._writer.unsynced_bytes > _MOST_UNSYNCED_BYTES
            if record.kind.announces_act or record.durable or self._writer.head_waits or full:
                await self._make_durable(receipt.sequence)
            self._rotate_when_due()
        except OSError as error:
            raise AuditUnavailable("the audit log cannot be written") from error
        return receipt

    async def tend(self) -> None:
        """Signs and flushes what quiet times leave behind. Runs as long as the server does."""
        while True:
            await anyio.sleep(self._checkpoint_seconds)
            try:
                await self.checkpoint()
            except AuditUnavailable:
                log.exception("audit_unavailable")

    async def checkpoint(self) -> None:
        """Signs and flushes every record there is. Raises: AuditUnavailable."""
        try:
            self._settle()
            if self._writer.unsigned_records:
                self._sign()
            await self._make_durable(self._writer.last_sequence)
            self._rotate_when_due()
        except OSError as error:
            raise AuditUnavailable("the audit log cannot be written") from error

    def _begin(self, opened: OpenedLog) -> None:
        try:
            replace_file(self._files.public_key, opened.key.public.pem())
            facts = {"log": opened.log_id, "key": opened.key.public.key_id, **self._stamp}
            if opened.torn_bytes:
                facts["torn_bytes"] = opened.torn_bytes
            self._writer.append(OwnKind.AUDIT_OPENED.value, self._now(), facts)
            self._sign()
            self._writer.flush_now()
        except BaseException:
            self._writer.close()
            raise

    def _write(self, record: AuditRecord) -> Receipt:
        time = self._now()
        try:
            self._settle()
            return self._put(time, record)
        except OSError:
            self._refused_records += 1
            if record.kind.reports_end:
                self._owed.append((time, record))
            raise

    def _put(self, time: str, record: AuditRecord) -> Receipt:
        members = serialise_record(record, text_key=self._text_key)
        return self._writer.append(record.kind.value, time, {**members, **self._stamp})

    def _settle(self) -> None:
        """After a time without room: says so, and writes the ends that it owes, with the times they happened at."""
        if self._refused_records:
            facts = {"refused_records": self._refused_records, "late_records": len(self._owed), **self._stamp}
            self._writer.append(OwnKind.AUDIT_RESUMED.value, self._now(), facts)
            self._refused_records = 0
        while self._owed:
            self._put(*self._owed[0])
            self._owed.popleft()

    def _sign_when_due(self) -> None:
        old = self._clock.monotonic() - self._signed_at >= self._checkpoint_seconds
        if old or self._writer.unsigned_records >= self._checkpoint_records:
            self._sign()

    def _sign(self) -> None:
        self._writer.checkpoint(self._now())
        self._signed_at = self._clock.monotonic()

    def _rotate_when_due(self) -> None:
        # A flush under way has the old file in its hands; whoever leads the flush comes here afterwards.
        if self._writer.size < self._rotate_at or self._flushing is not None:
            return
        try:
            self._writer.rotate(self._now())
            self._rotate_at = self._rotate_bytes
        except OSError:
            # No reason to stop: the old file still takes records.
            self._rotate_at = self._writer.size + self._rotate_bytes // 8
            log.exception("audit_not_rotated")

    async def _make_durable(self, sequence: int) -> None:
        """Waits for a flush that covers `sequence`. Authenticator that come while one runs share the next.

        When it fails, or whoever led it gives up, each of them tries again and finds out for itself.
        """
        while self._writer.durable_sequence < sequence:
            if self._flushing is None:
                await self._flush()
            else:
                await self._flushing.wait()

    async def _flush(self) -> None:
        flush = self._writer.begin_flush()
        try:
            order = self._flusher.do(flush.run)
            if not order.is_over:
                await self._wait_for(order)
            order.require_success()
        except OSError:
            self._writer.flush_failed()
            raise
        except RuntimeError as cause:
            # No thread could be started for it: the machine, or a page, has used up all processes.
            self._writer.flush_failed()
            raise OSError(errno.EAGAIN, "nothing could flush the log") from cause
        self._writer.flushed(flush)

    async def _wait_for(self, order: Order) -> None:
        over = self._flushing = anyio.Event()
        try:
            # Whoever gives up waits all the same: the file must not be rotated away under the disk's hands.
            with anyio.CancelScope(shield=True):
                await order.wait()
        finally:
            self._flushing = None
            over.set()

    def _now(self) -> str:
        return utc_timestamp(self._clock.wall())
