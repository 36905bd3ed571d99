"""Control of the display: held by a person at the live view, or by the agents. Agents wait while a person holds it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import structlog

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.core.records import AuditRecord, RecordKind

MAX_TAKEOVER_SECONDS = 30 * 60.0
"""A takeover without a hand-back ends after this time."""
TAKEOVER_RETRY_SECONDS = 15.0
"""Upper bound of the wait suggested to agents during a takeover, whose real end is unknown."""
_FINAL_RECORD_SECONDS = 5
TOOL = "viewer"

log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class Takeover:
    """Tracks the viewers that may control the display."""

    clock: Clock
    audit: AuditLog
    idle_seconds: float
    """Control gained by input alone ends this long after the last input."""
    _controls: list[ViewerControl] = field(default_factory=list)

    def seconds_left(self) -> float:
        """Return how long agents should wait; 0 when no person is in control."""
        now = self.clock.monotonic()
        return max((control.wait_seconds(now) for control in self._controls), default=0.0)

    @asynccontextmanager
    async def viewer_control(self, *, subject: str, viewer_id: str) -> AsyncIterator[ViewerControl]:
        """Register a control socket for as long as it is open. Its control ends with it at the latest."""
        control = ViewerControl(
            subject=subject, viewer_id=viewer_id, clock=self.clock, audit=self.audit, idle_seconds=self.idle_seconds
        )
        self._controls.append(control)
        try:
            yield control
        finally:
            self._controls.remove(control)
            with anyio.move_on_after(_FINAL_RECORD_SECONDS, shield=True):
                try:
                    await control.release("left")
                except AuditUnavailable:
                    log.exception("takeover_end_not_recorded", subject=subject)


@dataclass(slots=True, kw_only=True, eq=False)
class ViewerControl:
    """The control state of one control socket."""

    subject: str
    viewer_id: str
    clock: Clock
    audit: AuditLog
    idle_seconds: float
    control_expires_at: float = 0.0
    """End of an explicit takeover; 0 for none."""
    input_expires_at: float = 0.0
    """End of the control that the last key or button gave."""
    started_at: float | None = None
    """Start of the control period that the audit log has as open."""
    records: anyio.Lock = field(default_factory=anyio.Lock)
    """Orders the record of an end after the record of its start."""

    @property
    def in_control(self) -> bool:
        return self.clock.monotonic() < max(self.control_expires_at, self.input_expires_at)

    @property
    def has_taken_over(self) -> bool:
        """Whether control lasts until it is handed back."""
        return self.clock.monotonic() < self.control_expires_at

    def wait_seconds(self, now: float) -> float:
        takeover = min(self.control_expires_at - now, TAKEOVER_RETRY_SECONDS)
        return max(0.0, takeover, self.input_expires_at - now)

    async def on_input(self) -> None:
        """Take control for a key or button, which may reach the display afterwards. Raises: AuditUnavailable."""
        self.input_expires_at = self.clock.monotonic() + self.idle_seconds
        await self._record_start("input")

    def on_motion(self) -> bool:
        """Return whether a pointer motion may pass. Outside of control it may not: a resting mouse is not input."""
        if not self.in_control:
            return False
        self.input_expires_at = self.clock.monotonic() + self.idle_seconds
        return True

    async def take_over(self) -> None:
        """Take control until `release`. Raises: AuditUnavailable."""
        self.control_expires_at = self.clock.monotonic() + MAX_TAKEOVER_SECONDS
        await self._record_start("button")

    async def release(self, why: str) -> bool:
        """End control now, and return whether there was any. Raises: AuditUnavailable."""
        self.control_expires_at = self.input_expires_at = 0.0
        return await self.record_end(why)

    async def record_end(self, why: str = "idle") -> bool:
        """Record the end of control that has expired, and return whether it has. Called periodically.

        Raises: AuditUnavailable.
        """
        async with self.records:
            if self.started_at is None or self.in_control:
                return False
            duration_ms = round((self.clock.monotonic() - self.started_at) * 1000, 1)
            self.started_at = None
            await self._record(RecordKind.TAKEOVER_ENDED, why, duration_ms)
            return True

    async def _record_start(self, how: str) -> None:
        if self.started_at is not None:
            return
        async with self.records:
            if self.started_at is None:
                self.started_at = self.clock.monotonic()
                await self._record(RecordKind.TAKEOVER_BEGUN, how)

    async def _record(self, kind: RecordKind, how: str, duration_ms: float | None = None) -> None:
        await self.audit.record(
            AuditRecord(
                kind=kind,
                call_id=self.viewer_id,
                subject=self.subject,
                tool=TOOL,
                subcommand=how,
                duration_ms=duration_ms,
            )
        )
