"""All open sessions: creation, limits, idle expiry, and the window that viewers see."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import structlog

from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout
from browser_shell.browser.chromium.supervisor import BrowserSupervisor
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver
from browser_shell.browser.page.connection import MAX_MESSAGE_BYTES, PageConnection
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.browser.session import Session, SessionKey
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.access import HumanControl, SessionWindow
from browser_shell.core.decisions import Requester
from browser_shell.core.errors import AuditUnavailable, BrowserUnavailable, TryLater
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.policy.document import OutputSection, SessionsSection
from browser_shell.process.accounts import make_private_directory

log = structlog.get_logger()

_SWEEP_SECONDS = 5.0
_MIN_FRONT_SECONDS = 1.0
"""`show_latest` leaves a window in front for at least this long."""
_MAX_REMEMBERED_ENDS = 1000
_RECORD_SECONDS = 2.0


class Sessions:
    """All open sessions of this server, by subject and session id."""

    def __init__(
        self,
        *,
        supervisor: BrowserSupervisor,
        tabs: TabTracker,
        driver: AgentBrowserDriver,
        clock: Clock,
        limits: SessionsSection,
        output: OutputSection,
        layout: RuntimeLayout,
        proxy_addresses: ProxyAddresses,
        human: HumanControl,
        audit: AuditLog,
    ) -> None:
        self._supervisor = supervisor
        self._tabs = tabs
        self._driver = driver
        self._clock = clock
        self._limits = limits
        self._output = output
        self._layout = layout
        self._human = human
        self._audit = audit
        self._human_control_at = 0.0
        self._raised_at = 0.0
        self._proxy_addresses = proxy_addresses
        self._open: dict[SessionKey, Session] = {}
        self._end_reasons: dict[SessionKey, str] = {}

    @asynccontextmanager
    async def hold(self, subject: str, session_id: str) -> AsyncIterator[Session]:
        """Yield the session with its lock held; create it if it does not exist. Calls of one session run in order.

        Raises: TryLater when no more sessions are allowed, AuditUnavailable when the opening cannot be recorded.
        """
        key = SessionKey(subject=subject, session_id=session_id)
        while True:
            session = self._open.get(key) or self._create(key)
            async with session.lock:
                if session.ended:
                    continue  # The session was closed while this call waited for it.
                await self._record_opening(session)
                session.last_used = self._clock.monotonic()
                try:
                    yield session
                finally:
                    session.last_used = self._clock.monotonic()
                return

    async def _record_opening(self, session: Session) -> None:
        if session.recorded_at is None:
            await self._audit.record(_record(RecordKind.SESSION_OPENED, session))
            session.recorded_at = self._clock.monotonic()

    async def _record_end(self, session: Session, rule_id: str) -> None:
        if session.recorded_at is None:
            return
        open_ms = round((self._clock.monotonic() - session.recorded_at) * 1000, 1)
        # The session ends even if the record cannot be written. The audit log keeps the record and retries.
        with suppress(AuditUnavailable), anyio.move_on_after(_RECORD_SECONDS):
            await self._audit.record(_record(RecordKind.SESSION_CLOSED, session, rule_id=rule_id, duration_ms=open_ms))

    async def close(self, subject: str, session_id: str) -> bool:
        """Close a session and everything in it. Return False when no such session is open."""
        key = SessionKey(subject=subject, session_id=session_id)
        self._end_reasons.pop(key, None)
        session = self._open.get(key)
        if session is None:
            return False
        async with session.lock:
            await self.close_held(session)
        return True

    async def close_held(self, session: Session) -> None:
        """Close a session whose lock the caller holds."""
        await self._end(session, rule_id="")

    def count(self) -> int:
        """Return the number of sessions that have a browser context."""
        return sum(bool(session.context_id) for session in self._open.values())

    def windows(self, subject: str) -> list[SessionWindow]:
        """Describe the sessions of one subject that have a window, oldest first."""
        return [
            session.window() for key, session in self._open.items() if key.subject == subject and session.context_id
        ]

    async def bring_to_front(self, subject: str, session_id: str) -> None:
        """Raise the session's window. Does nothing without such a session or without a browser."""
        session = self._open.get(SessionKey(subject=subject, session_id=session_id))
        if session is not None and session.context_id:
            await self._raise_window(session)

    async def show_latest(self) -> None:
        """Raise the window of the session that was used last.

        The bridge of each viewer calls this periodically. Raising a window on every call would cost each call 30 ms,
        and the picture would change too fast when two sessions work at the same time.
        """
        now = self._clock.monotonic()
        candidates = [s for s in self._open.values() if s.context_id and s.active_target_id]
        if not candidates or now - self._raised_at < _MIN_FRONT_SECONDS or self._human.seconds_left() > 0:
            return
        latest = max(candidates, key=lambda session: session.last_used)
        if latest.last_used > self._raised_at and latest.context_id != self._tabs.front_context_id:
            await self._raise_window(latest)

    async def _raise_window(self, session: Session) -> None:
        self._raised_at = self._clock.monotonic()
        if self._supervisor.is_current(session.generation):
            with suppress(BrowserUnavailable):
                session.raise_window((await self._supervisor.connection(seconds=0.1)).devtools)

    async def close_all(self) -> None:
        for session in list(self._open.values()):
            await self._end(session, rule_id="server.stopping")

    async def expire_idle(self) -> None:
        """Close idle sessions periodically, until cancelled."""
        while True:
            await anyio.sleep(min(_SWEEP_SECONDS, self._limits.idle_seconds / 2))
            if self._human.seconds_left() > 0:
                # Agents are paused and the person may use any session, so none expires now.
                self._human_control_at = self._clock.monotonic()
            for session in list(self._open.values()):
                if self._is_idle(session):
                    async with session.lock:
                        if self._is_idle(session):
                            self._remember_end(session.key, f"was idle for {self._limits.idle_seconds} s")
                            await self._end(session, rule_id="sessions.idle_seconds")
                            log.info("session_expired", session=session.name)

    def _is_idle(self, session: Session) -> bool:
        last_used = max(session.last_used, self._human_control_at)
        return not session.ended and self._clock.monotonic() - last_used >= self._limits.idle_seconds

    def _create(self, key: SessionKey) -> Session:
        self._require_room(key.subject)
        name = key.driver_name()
        session = Session(
            key=key,
            name=name,
            supervisor=self._supervisor,
            tracker=self._tabs,
            driver=self._driver,
            last_used=self._clock.monotonic(),
            denials_reported_until=self._clock.monotonic(),
            directory=make_private_directory(self._layout.artifacts / name, owner=self._layout.account),
            proxy_address=self._proxy_addresses.take(Requester(subject=key.subject, session_id=key.session_id)),
            proxy_port=self._proxy_addresses.port,
            loss_reason=self._end_reasons.pop(key, ""),
            pages=PageConnection(
                partial(self._supervisor.open_connection, max_message_bytes=MAX_MESSAGE_BYTES), output=self._output
            ),
        )
        self._open[key] = session
        return session

    def _require_room(self, subject: str) -> None:
        """Raises: TryLater when the subject, or the server, has no place for another session."""
        limits = self._limits
        own_ids = sorted(other.session_id for other in self._open if other.subject == subject)
        yours = f"; yours are: {', '.join(own_ids)}" if own_ids else ""
        expiry = f"until one has been idle for {limits.idle_seconds} s"
        if len(own_ids) >= limits.max_of_one_subject:
            raise TryLater(
                f"you have {len(own_ids)} of {limits.max_of_one_subject} sessions for each caller{yours}. "
                f"Close one of yours, or wait {expiry}",
                rule_id="sessions.max_per_subject",
            )
        if len(self._open) >= limits.max:
            raise TryLater(
                f"all {limits.max} sessions of this server are in use{yours}. "
                f"{'Close one of yours, or wait' if own_ids else 'Wait'} {expiry}",
                rule_id="sessions.max",
            )

    def _remember_end(self, key: SessionKey, reason: str) -> None:
        """Keep the reason, so that the next call of that session gets an error instead of an empty page."""
        self._end_reasons[key] = reason
        while len(self._end_reasons) > _MAX_REMEMBERED_ENDS:
            self._end_reasons.pop(next(iter(self._end_reasons)))

    async def _end(self, session: Session, *, rule_id: str) -> None:
        """Close the session and release its resources. `rule_id` is the reason; empty when the client closed it."""
        if session.ended:
            return
        session.ended = True
        self._open.pop(session.key, None)
        self._proxy_addresses.release(session.proxy_address)
        with anyio.CancelScope(shield=True):
            await session.dispose()
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(session.directory, ignore_errors=True))
            await self._record_end(session, rule_id)


def _record(kind: RecordKind, session: Session, *, rule_id: str = "", duration_ms: float | None = None) -> AuditRecord:
    return AuditRecord(
        kind=kind,
        call_id="",
        subject=session.key.subject,
        session_id=session.key.session_id,
        tool="sessions",
        rule_id=rule_id,
        duration_ms=duration_ms,
    )
