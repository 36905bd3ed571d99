"""The audit log: chained JSON lines from one writer, durable before the act that they announce."""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import anyio
import structlog

from browser_shell.audit.chain import Members, OwnKind, serialise_record
from browser_shell.audit.recovery import OpenedLog, open_log
from browser_shell.audit.storage import LogFiles, lock_for_writing, require_file_or_nothing
from browser_shell.audit.writer import ChainWriter, FsyncThread
from browser_shell.core.errors import AuditUnavailable, ConfigurationInvalid
from browser_shell.core.ports import Clock
from browser_shell.core.records import ANNOUNCEMENTS, REPORTS_OF_ENDS, AuditRecord, Receipt, utc_timestamp
from browser_shell.process.files import replace_file

_MAX_UNSYNCED_BYTES = 256 * 1024
_MAX_LATE_RECORDS = 1024

log = structlog.get_logger()


class JsonLinesAudit:
    """A log for one event loop, in files that only their owner can read."""

    def __init__(
        self,
        *,
        path: Path,
        clock: Clock,
        policy_digest: str = "",
        rotate_bytes: int = 32 * 1024 * 1024,
        checkpoint_records: int = 500,
        checkpoint_seconds: float = 30.0,
    ) -> None:
        """Raises: ConfigurationInvalid when the log cannot be opened, was cut, or another server writes to it."""
        self._files = LogFiles(path)
        self._clock = clock
        self._policy: Members = {"policy_digest": policy_digest} if policy_digest else {}
        self._rotate_bytes = self._rotate_at = rotate_bytes
        self._checkpoint_records = checkpoint_records
        self._checkpoint_seconds = checkpoint_seconds
        self._late: deque[tuple[str, AuditRecord]] = deque(maxlen=_MAX_LATE_RECORDS)
        """Records of ended acts that could not be written in time."""
        self._refused_records = 0
        self._flushing: anyio.Event | None = None
        """Set at the end of the running flush."""
        self._fsync_thread = FsyncThread()
        # Before any file is created next to it.
        require_file_or_nothing(path)
        with ExitStack() as resources:
            resources.callback(os.close, lock_for_writing(self._files))
            try:
                opened = open_log(self._files)
                self._writer = ChainWriter(self._files, opened)
                resources.callback(self._writer.close)
                self._text_key = opened.key.text_key()
                self._write_opening(opened)
            except OSError as cause:
                raise ConfigurationInvalid(f"audit log {path}: cannot be written: {cause.strerror}") from cause
            self._resources = resources.pop_all()

    def __enter__(self) -> Self:
        with suppress(OSError):  # Every flush tries again.
            self._fsync_thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._fsync_thread.stop()
        with self._resources:
            try:
                self._write_late_records()
                self._writer.append(OwnKind.AUDIT_CLOSED.value, self._now(), self._policy)
                self._sign()
                self._writer.flush_now()
            except OSError:
                log.exception("audit_close_failed")

    async def record(self, record: AuditRecord) -> None:
        """Raises: AuditUnavailable."""
        await self.append(record)

    async def append(self, record: AuditRecord) -> Receipt:
        """Write a record and return its place in the log. Raises: AuditUnavailable."""
        try:
            # No await before the write, so that records keep the order of the calls.
            receipt = self._write(record)
            self._sign_when_due()
            is_full = self._writer.unsynced_bytes > _MAX_UNSYNCED_BYTES
            if record.kind in ANNOUNCEMENTS or record.durable or self._writer.has_new_head or is_full:
                await self._make_durable(receipt.sequence)
            self._rotate_when_due()
        except OSError as error:
            raise AuditUnavailable("the audit log cannot be written") from error
        return receipt

    async def run_checkpoints(self) -> None:
        """Sign and flush records regularly, also when no new ones arrive, until cancelled."""
        while True:
            await anyio.sleep(self._checkpoint_seconds)
            try:
                await self.checkpoint()
            except AuditUnavailable:
                log.exception("audit_unavailable")

    async def checkpoint(self) -> None:
        """Sign and flush all records. Raises: AuditUnavailable."""
        try:
            self._write_late_records()
            if self._writer.log.unsigned_records:
                self._sign()
            await self._make_durable(self._writer.log.last_sequence)
            self._rotate_when_due()
        except OSError as error:
            raise AuditUnavailable("the audit log cannot be written") from error

    def _write_opening(self, opened: OpenedLog) -> None:
        replace_file(self._files.public_key, opened.key.public.pem())
        members = {"log": opened.log_id, "key": opened.key.public.key_id, **self._policy}
        if opened.torn_bytes:
            members["torn_bytes"] = opened.torn_bytes
        self._writer.append(OwnKind.AUDIT_OPENED.value, self._now(), members)
        self._sign()
        self._writer.flush_now()

    def _write(self, record: AuditRecord) -> Receipt:
        time = self._now()
        try:
            self._write_late_records()
            return self._append(time, record)
        except OSError:
            self._refused_records += 1
            if record.kind in REPORTS_OF_ENDS:
                self._late.append((time, record))
            raise

    def _append(self, time: str, record: AuditRecord) -> Receipt:
        members = serialise_record(record, text_key=self._text_key)
        return self._writer.append(record.kind.value, time, {**members, **self._policy})

    def _write_late_records(self) -> None:
        """After failed writes: record the gap, then write the late records with their original times."""
        if self._refused_records:
            members = {"refused_records": self._refused_records, "late_records": len(self._late), **self._policy}
            self._writer.append(OwnKind.AUDIT_RESUMED.value, self._now(), members)
            self._refused_records = 0
        while self._late:
            self._append(*self._late[0])
            self._late.popleft()

    def _sign_when_due(self) -> None:
        is_due = self._clock.monotonic() - self._signed_at >= self._checkpoint_seconds
        if is_due or self._writer.log.unsigned_records >= self._checkpoint_records:
            self._sign()

    def _sign(self) -> None:
        self._writer.checkpoint(self._now())
        self._signed_at = self._clock.monotonic()

    def _rotate_when_due(self) -> None:
        # A running flush uses the old file. The task that started it calls this again afterwards.
        if self._writer.log.end < self._rotate_at or self._flushing is not None:
            return
        try:
            self._writer.rotate(self._now())
            self._rotate_at = self._rotate_bytes
        except OSError:
            # The old file still accepts records.
            self._rotate_at = self._writer.log.end + self._rotate_bytes // 8
            log.exception("audit_rotation_failed")

    async def _make_durable(self, sequence: int) -> None:
        """Wait for a flush that covers `sequence`. Callers that arrive during a flush share the next one.

        After a failed flush every caller tries again, so that each gets its own error.
        """
        while self._writer.durable_sequence < sequence:
            if self._flushing is None:
                await self._flush()
            else:
                await self._flushing.wait()

    async def _flush(self) -> None:
        flush = self._writer.begin_flush()
        finished = self._flushing = anyio.Event()
        try:
            # Shielded from cancellation: the file must not be rotated during the flush.
            with anyio.CancelScope(shield=True):
                await self._fsync_thread.run(flush.run)
        finally:
            self._flushing = None
            finished.set()
        self._writer.flushed(flush)

    def _now(self) -> str:
        return utc_timestamp(self._clock.wall())
