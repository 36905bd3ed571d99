"""Run one `browser-shell` command in its session, within its deadline, and leave the session usable."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from browser_shell.browser.driver.actions import Action, driver_actions, file_action, requested_sleep_ms
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver
from browser_shell.browser.driver.connection import TAB_GONE, DriverReply
from browser_shell.browser.page_watch import DIALOG_GRACE_SECONDS, GONE_GRACE_SECONDS, PageWatch
from browser_shell.browser.policy_errors import report_policy_denials
from browser_shell.browser.results import failed, is_wedged, lost_its_page, succeeded, tab_closed
from browser_shell.browser.session import Session
from browser_shell.browser.sessions import Sessions
from browser_shell.browser.tab_dialog_commands import run_dialog, run_tab
from browser_shell.browser.tabs import Dialog
from browser_shell.core.access import HumanControl, refuse_while_human_controls
from browser_shell.core.calls import Attachment, BrowserCommand, CommandResult, Principal, ToolCall
from browser_shell.core.decisions import Denial, Requester
from browser_shell.core.errors import (
    BrowserUnavailable,
    DialogOpen,
    ErrorCode,
    ExecutionTimedOut,
    SandboxUnavailable,
)
from browser_shell.core.ports import Clock, ReportProgress
from browser_shell.process.files import take_file

_RECOVERY_SECONDS = 5.0
_WAIT_MARGIN_SECONDS = 0.3
"""A `wait` ends this long before the deadline, so that a condition that is never met does not cost the page."""
_DIALOG_CHARACTERS = 300
_DIALOG_POLL_SECONDS = 0.02
_HISTORY = frozenset({"back", "forward", "reload"})
_CONTINUES_AFTER_DIALOG = frozenset({"wait", "open", "back", "forward", "reload"})
"""Commands that the driver continues after the dialog is answered. Any other command ends then, and its daemon keeps
the refs of the last snapshot."""
_BY_DEVTOOLS = frozenset({"tab", "dialog"})
_WITHOUT_DRIVER = _BY_DEVTOOLS | {"close"}
_IMAGE_TYPES = {"jpeg": ("jpg", "image/jpeg"), "png": ("png", "image/png")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactLimits:
    """Settings for screenshots and PDFs, from the policy document."""

    screenshot_format: str
    screenshot_quality: int
    max_image_bytes: int
    max_pdf_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSandbox:
    """Runs `BrowserCommand` plans."""

    sessions: Sessions
    driver: AgentBrowserDriver
    denials_since: Callable[[Requester, float], list[Denial]]
    """Returns the connections of a session that the egress proxy denied since a moment in monotonic seconds."""
    human: HumanControl
    clock: Clock
    limits: ArtifactLimits

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        """Raises: ExecutionTimedOut, SandboxUnavailable, SessionGone, TryLater."""
        deadline = self.clock.monotonic() + plan.timeout_seconds
        has_started = plan.name == "close"
        try:
            with anyio.move_on_after(plan.timeout_seconds):
                if plan.name == "close":
                    existed = await self.sessions.close(call.principal.subject, plan.session_id)
                    return CommandResult(exit_code=0, data={"closed": existed})
                async with self.sessions.hold(call.principal.subject, plan.session_id) as session:
                    has_started = True
                    return await self._run_in_session(call.principal, session, plan, deadline)
        except ExecutionTimedOut:
            raise
        except TimeoutError as late:
            raise _timed_out(plan, has_started=has_started) from late
        raise _timed_out(plan, has_started=has_started)

    async def _run_in_session(
        self, principal: Principal, session: Session, plan: BrowserCommand, deadline: float
    ) -> CommandResult:
        # The pipeline checked this before the call waited for its session.
        refuse_while_human_controls(self.human)
        previous_target = session.active_target_id
        notes = await session.prepare(starts_page=plan.name == "open")
        if plan.name in _BY_DEVTOOLS:
            result = await (run_tab if plan.name == "tab" else run_dialog)(session, plan)
            return _with_notes(result, notes)
        await self._refuse_while_dialog_is_open(session)
        tabs_before = {tab.tab_id for tab in session.tabs()}
        started_at = self.clock.monotonic()
        try:
            await self._bind_driver(session)
            if session.active_target_id != previous_target:
                await self.driver.wait_for_idle_daemons(except_for=session.name)
            result = await self._execute(session, plan, deadline)
        except (TimeoutError, anyio.get_cancelled_exc_class()):
            # After a timeout or a cancellation, the next call of this session must find a page that replies.
            with anyio.move_on_after(_RECOVERY_SECONDS, shield=True):
                await session.abandon_page()
            raise
        requester = Requester(subject=principal.subject, session_id=plan.session_id)
        denials = self.denials_since(requester, session.denials_reported_until)
        result, denial_notes = report_policy_denials(result, denials, started_at)
        session.denials_reported_until = self.clock.monotonic()
        new_tabs = [tab.tab_id for tab in session.tabs() if tab.tab_id not in tabs_before]
        notes += denial_notes
        notes += [f"a new tab {tab_id} opened; use: tab switch {tab_id}" for tab_id in new_tabs]
        notes += [f"the page showed an alert: {text!r}" for text in session.take_alerts()]
        return _with_notes(result, notes)

    async def _refuse_while_dialog_is_open(self, session: Session) -> None:
        """Wait a moment for an alert, which the driver answers by itself.

        Raises: DialogOpen.
        """
        first = session.dialog()
        if first is None:
            return
        with anyio.move_on_after(DIALOG_GRACE_SECONDS):
            # No event reports the end of a dialog that the driver answered.
            while first.kind == "alert" and session.dialog() is first:  # noqa: ASYNC110
                await anyio.sleep(_DIALOG_POLL_SECONDS)
        dialog = session.dialog()
        if dialog is not None and (dialog is first or dialog.kind != "alert"):
            raise _dialog_error(dialog)

    async def _bind_driver(self, session: Session) -> None:
        """Point the driver at the session's active tab.

        Raises: SandboxUnavailable, or BrowserUnavailable when the browser's end is the reason.
        """
        try:
            await self._point_driver(session, session.active_target_id)
        except SandboxUnavailable as fault:
            if await session.browser_is_gone():
                raise BrowserUnavailable("the browser went away while its driver was made ready") from fault
            raise

    async def _point_driver(self, session: Session, target_id: str) -> None:
        if await self.driver.make_ready(session.name, target_id):
            session.driver_target_id = target_id
        if session.driver_target_id != target_id:
            reply = await self.driver.run(
                session.name, [Action("tab_switch", tabId=target_id)], seconds=_RECOVERY_SECONDS
            )
            if not reply.success:
                raise SandboxUnavailable(f"the driver cannot reach the tab: {reply.error}")
            session.driver_target_id = target_id

    async def _execute(self, session: Session, plan: BrowserCommand, deadline: float) -> CommandResult:
        if plan.name in ("screenshot", "pdf"):
            return await self._make_file(session, plan)
        wait_ms = max(1, int((deadline - self.clock.monotonic() - _WAIT_MARGIN_SECONDS) * 1000))
        reply = await self._drive(session, plan, driver_actions(plan, wait_ms=wait_ms))
        result = await self._interpret_reply(session, plan, reply)
        sleep_ms = requested_sleep_ms(plan)
        if sleep_ms is not None and sleep_ms > wait_ms and result.error is None:
            return CommandResult(
                exit_code=ErrorCode.TIMEOUT.exit_code,
                error=ErrorCode.TIMEOUT,
                message=(
                    f"{sleep_ms} ms do not fit into timeout_sec {plan.timeout_seconds}; waited {wait_ms} ms; "
                    "the page is untouched"
                ),
            )
        return result

    async def _drive(self, session: Session, plan: BrowserCommand, actions: Sequence[Action]) -> DriverReply:
        """Run the driver, and stop waiting for it when a dialog blocks the page or the page has gone.

        The driver would wait for a reply that does not come before another call answers the dialog, or never.

        Raises: DialogOpen, BrowserUnavailable, SandboxUnavailable.
        """
        watch = PageWatch(session)
        try:
            with watch:
                # The caller keeps the deadline; this one is only the fallback.
                return await self.driver.run(session.name, actions, seconds=plan.timeout_seconds + _RECOVERY_SECONDS)
        except SandboxUnavailable as fault:
            if await session.browser_is_gone():
                raise BrowserUnavailable("the browser went away while the command ran") from fault
            # A new daemon would wait for a page that is still loading.
            await session.abandon_page()
            raise SandboxUnavailable("the driver ended while the command ran; the page was closed") from fault
        if watch.dialog is not None:
            if plan.name in _CONTINUES_AFTER_DIALOG:
                self.driver.detach(session.name)
            raise _dialog_error(watch.dialog)
        # The daemon may be waiting for another page of the session, so it is not killed before the next command.
        self.driver.detach(session.name)
        if await session.browser_is_gone():
            raise BrowserUnavailable("the browser went away while the command ran")
        return TAB_GONE

    async def _interpret_reply(self, session: Session, plan: BrowserCommand, reply: DriverReply) -> CommandResult:
        if reply.success:
            return succeeded(plan, reply)
        if plan.name in _HISTORY and "navigated or closed" in reply.error:
            # The navigation happened; the driver lost the connection to the previous document.
            reply = await self.driver.run(session.name, [Action("url")], seconds=_RECOVERY_SECONDS)
            return succeeded(plan, reply) if reply.success else failed(plan, reply)
        if is_wedged(reply):
            # The daemon still waits for the page and would delay the next call too.
            await session.abandon_page()
            raise ExecutionTimedOut("the page did not answer and was closed; cookies are kept")
        if lost_its_page(reply):
            with anyio.move_on_after(GONE_GRACE_SECONDS):
                await session.wait_until_active_tab_closes()
                return tab_closed(plan, reply)
        return failed(plan, reply)

    async def _make_file(self, session: Session, plan: BrowserCommand) -> CommandResult:
        limits = self.limits
        if plan.name == "pdf":
            extension, mime_type, max_bytes = "pdf", "application/pdf", limits.max_pdf_bytes
        else:
            extension, mime_type = _IMAGE_TYPES[limits.screenshot_format]
            max_bytes = limits.max_image_bytes
        path = session.directory / f"{secrets.token_hex(8)}.{extension}"
        action = file_action(
            plan, path=str(path), image_format=limits.screenshot_format, image_quality=limits.screenshot_quality
        )
        reply = await self._drive(session, plan, [action])
        result = await self._interpret_reply(session, plan, reply)
        if result.error is not None:
            return result
        content = await anyio.to_thread.run_sync(lambda: take_file(path, max_bytes=max_bytes))
        data = dict(result.data) if isinstance(result.data, dict) else {}
        data.pop("path", None)
        return CommandResult(
            exit_code=0,
            data={**data, "attached": mime_type, "bytes": len(content)},
            message=result.message,
            attachments=(Attachment(mime_type=mime_type, content=content, name=f"{plan.name}.{extension}"),),
        )


def _timed_out(plan: BrowserCommand, *, has_started: bool) -> ExecutionTimedOut:
    if not has_started:
        outcome = "it waited for another call of its session and did nothing"
    elif plan.name in _WITHOUT_DRIVER:
        outcome = "whether it was done is not known"
    else:
        outcome = "its page was closed, cookies are kept"
    return ExecutionTimedOut(f"{plan.name} was not finished within {plan.timeout_seconds} s; {outcome}")


def _dialog_error(dialog: Dialog) -> DialogOpen:
    return DialogOpen(
        f"the page shows a {dialog.kind} dialog: {dialog.message[:_DIALOG_CHARACTERS]!r}", rule_id="page.dialog"
    )


def _with_notes(result: CommandResult, notes: Sequence[str]) -> CommandResult:
    if not notes:
        return result
    text = "\n".join(f"NOTE: {note}" for note in notes)
    return replace(result, message=f"{result.message}\n{text}" if result.message else text)
