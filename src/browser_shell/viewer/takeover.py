"""Whose turn it is: a person at the live view, or the agents. Agents wait while a person is in control."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import structlog

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.core.records import AuditRecord, RecordKind

LONGEST_HOLD_SECONDS = 30 * 60.0
"""A takeover that nobody handed back ends after this long."""
WAIT_WHILE_HELD_SECONDS = 15.0
"""What agents are told to wait when a person has taken over and nobody knows for how long."""
_LAST_RECORD_SECONDS = 5
TOOL = "viewer"

log = structlog.get_logger()


class Takeover:
    """Who is in control. Every viewer that may touch the display has a `ViewerControl` here."""

    def __init__(self, *, clock: Clock, audit: AuditLog, idle_seconds: float) -> None:
        self.idle_seconds = idle_seconds
        """Control by input alone ends this long after the last input."""
        self._clock = clock
        self._audit = audit
        self._hands: list[ViewerControl] = []

    def seconds_left(self) -> float:
        """How long agents should wait; 0 when no person is in control."""
        now = self._clock.monotonic()
        return max((hand.wait_seconds(now) for hand in self._hands), default=0.0)

    @asynccontextmanager
    async def hand(self, *, subject: str, viewer_id: str) -> AsyncIterator[ViewerControl]:
        """One viewer that may take control, for as long as its socket is open; control ends with it at the latest."""
        hand = ViewerControl(
            subject=subject, viewer_id=viewer_id, clock=self._clock, audit=self._audit, idle_seconds=self.idle_seconds
        )
        self._hands.append(hand)
        try:
            yield hand
        finally:
            self._hands.remove(hand)
            with anyio.move_on_after(_LAST_RECORD_SECONDS, shield=True):
                try:
                    await hand.let_go("left")
                except AuditUnavailable:
                    log.exception("takeover_end_not_recorded", subject=subject)


@dataclass(slots=True, kw_only=True, eq=False)
class ViewerControl:
    """One person at one viewer."""

    subject: str
    viewer_id: str
    clock: Clock
    audit: AuditLog
    idle_seconds: float
    held_until: float = 0.0
    """End of an explicit takeover; 0 for none."""
    input_until: float = 0.0
    """End of the control that the last key or button gave."""
    begun_at: float | None = None
    """Since when this person is in control, as far as the records say."""
    records: anyio.Lock = field(default_factory=anyio.Lock)
    """Keeps the record of an end behind that of its beginning."""

    @property
    def in_control(self) -> bool:
        return self.clock.monotonic() < max(self.held_until, self.input_until)

    @property
    def holds(self) -> bool:
        """Whether control lasts until it is handed back."""
        return self.clock.monotonic() < self.held_until

    def wait_seconds(self, now: float) -> float:
        held = min(self.held_until - now, WAIT_WHILE_HELD_SECONDS)
        return max(0.0, held, self.input_until - now)

    async def touch(self) -> None:
        """A key or button: it may reach the display when this returns. Raises: AuditUnavailable."""
        self.input_until = self.clock.monotonic() + self.idle_seconds
        await self._note_beginning("input")

    def move(self) -> bool:
        """Whether a mere motion may pass. Outside of control it may not: resting the mouse on the picture is no act."""
        if not self.in_control:
            return False
        self.input_until = self.clock.monotonic() + self.idle_seconds
        return True

    async def take_over(self) -> None:
        """Control until `hand_back`. Raises: AuditUnavailable."""
        self.held_until = self.clock.monotonic() + LONGEST_HOLD_SECONDS
        await self._note_beginning("button")

    async def hand_back(self) -> None:
        """Raises: AuditUnavailable."""
        await self.let_go("handed back")

    async def let_go(self, why: str) -> None:
        """Raises: AuditUnavailable."""
        self.held_until = self.input_until = 0.0
        await self.settle(why)

    async def settle(self, why: str = "idle") -> None:
        """Records the end of a control that is over. Called every now and then. Raises: AuditUnavailable."""
        async with self.records:
            if self.begun_at is None or self.in_control:
                return
            duration_ms = round((self.clock.monotonic() - self.begun_at) * 1000, 1)
            self.begun_at = None
            await self._record(RecordKind.TAKEOVER_ENDED, why, duration_ms)

    async def _note_beginning(self, how: str) -> None:
        if self.begun_at is not None:
            return
        async with self.records:
            if self.begun_at is None:
                self.begun_at = self.clock.monotonic()
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
