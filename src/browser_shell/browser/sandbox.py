"""Run one `browser-shell` command in its session, within its deadline, and leave the session usable."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from browser_shell.browser.arrival import describe_arrival, needs_description
from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.driver.actions import (
    Action,
    PageAction,
    Pdf,
    SwitchTab,
    driver_action,
)
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver
from browser_shell.browser.driver.connection import TAB_GONE, DriverReply
from browser_shell.browser.navigation import LoadWatch, history_problem, no_answer, still_loading
from browser_shell.browser.navigation_errors import NEEDS_CREDENTIALS
from browser_shell.browser.page.commands import Effect, PageCommand, entry_of
from browser_shell.browser.page.waiting import wait_for_first_controls
from browser_shell.browser.page_commands import page_replaced, run_on_page
from browser_shell.browser.page_watch import DIALOG_GRACE_SECONDS, GONE_GRACE_SECONDS, PageWatch
from browser_shell.browser.policy_errors import report_policy_denials
from browser_shell.browser.results import (
    NAVIGATION,
    failed,
    lost_its_page,
    outcome_is_unknown,
    refused_for_dialog,
    shows_new_document,
    succeeded,
    tab_closed,
    tab_closed_by,
)
from browser_shell.browser.session import Session
from browser_shell.browser.sessions import Sessions
from browser_shell.browser.tab_dialog_commands import run_dialog, run_tab
from browser_shell.core.access import HumanControl, refuse_while_human_controls
from browser_shell.core.calls import Attachment, BrowserCommand, CommandResult, Principal, ToolCall
from browser_shell.core.decisions import Denial, Requester
from browser_shell.core.errors import (
    BrowserUnavailable,
    ErrorCode,
    ExecutionTimedOut,
    SandboxUnavailable,
)
from browser_shell.core.ports import Clock, ReportProgress
from browser_shell.policy.document import OutputSection
from browser_shell.process.files import take_file

_RECOVERY_SECONDS = 5.0
_ALERTS_SECONDS = 2.0
_ALERT_POLL_SECONDS = 0.02
_PROMPT_SECONDS = 1.0
"""Chromium opens a login prompt some time after its error page. A tab that navigates in between ignores all input."""
_WAIT_MARGIN_SECONDS = 0.3
"""A `wait` ends this long before the deadline of the call, because the page is closed at the deadline."""
_PAGE_DIALOG_GRACE_SECONDS = 0.05
"""Time that a page command has to finish after a dialog opened."""
_REOPEN_ADVICE = "Open the page again, if it needs more time with a larger timeout_sec (at most 120), or open another."
_HISTORY = frozenset({"back", "forward", "reload"})
_CONTINUES_AFTER_DIALOG = frozenset({"wait", "open", "back", "forward", "reload"})
"""Driver commands that keep the daemon busy after the dialog is answered, so the next command needs a new daemon."""
_SESSION_COMMANDS = frozenset({"tab", "dialog"})
_KEEPS_PAGE_AFTER_TIMEOUT = _SESSION_COMMANDS | {"close"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSandbox:
    """Runs `BrowserCommand` plans."""

    sessions: Sessions
    driver: AgentBrowserDriver
    denials_since: Callable[[Requester, float], list[Denial]]
    """Returns the connections of a session that the egress proxy denied since a moment in monotonic seconds."""
    human: HumanControl
    clock: Clock
    output: OutputSection

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        """Run one command in its session.

        Raises: AuditUnavailable, DevToolsError, DialogOpen, ExecutionTimedOut, OutputTooLarge, SandboxUnavailable,
        SessionGone, TryLater.
        """
        if plan.name == "close":  # `hold` would create the session.
            with anyio.move_on_after(plan.timeout_seconds):
                existed = await self.sessions.close(call.principal.subject, plan.session_id)
                return CommandResult(exit_code=0, data={"closed": existed})
            raise _timed_out(plan, has_started=True)
        async with self.hold(call, plan) as session:
            return await session.run(call, plan, report_progress)

    @asynccontextmanager
    async def hold(self, call: ToolCall, plan: BrowserCommand) -> AsyncIterator[HeldSession]:
        """Reserve the session of a plan for the steps of one call, which share the timeout of the plan.

        Raises: AuditUnavailable, ExecutionTimedOut, TryLater.
        """
        deadline = self.clock.monotonic() + plan.timeout_seconds
        async with AsyncExitStack() as stack:
            with anyio.move_on_after(plan.timeout_seconds) as waiting:
                session = await stack.enter_async_context(self.sessions.hold(call.principal.subject, plan.session_id))
            if waiting.cancelled_caught:
                raise _timed_out(plan, has_started=False)
            yield HeldSession(sandbox=self, session=session, deadline=deadline)

    async def run_step(
        self, principal: Principal, session: Session, plan: BrowserCommand, deadline: float
    ) -> CommandResult:
        """Run a command in a session that the caller holds. `deadline` is a moment in monotonic seconds."""
        seconds = deadline - self.clock.monotonic()
        if seconds <= 0:
            raise ExecutionTimedOut(
                f"no time was left for {plan.name} of {plan.timeout_seconds} s; it did nothing",
                advice="Run it in a call of its own, or give a larger timeout_sec (at most 120).",
            )
        try:
            with anyio.move_on_after(seconds):
                if plan.name == "close":
                    await self.sessions.close_held(session)
                    return CommandResult(exit_code=0, data={"closed": True})
                result = await self._run_in_session(principal, session, plan, deadline)
                return replace(result, shows_new_document=shows_new_document(plan, result))
        except ExecutionTimedOut:  # A TimeoutError whose message is already complete.
            raise
        except TimeoutError as late:
            raise _timed_out(plan, has_started=True) from late
        raise _timed_out(plan, has_started=True)

    async def _run_in_session(
        self, principal: Principal, session: Session, plan: BrowserCommand, deadline: float
    ) -> CommandResult:
        # A person may have taken control while the call waited for its session.
        refuse_while_human_controls(self.human)
        previous_target = session.active_target_id
        notes = await session.prepare(opens_page=plan.name == "open")
        tabs_before, dialog_before = {tab.tab_id for tab in session.tabs()}, session.dialog()
        started_at = self.clock.monotonic()
        if plan.name in _SESSION_COMMANDS:
            result = await (run_tab if plan.name == "tab" else run_dialog)(session, plan)
        elif dialog_before is not None:
            raise dialog_before.error()
        else:
            is_new_tab = session.active_target_id != previous_target
            result = await self._run_in_tab(session, plan, deadline, is_new_tab=is_new_tab)
        if needs_description(plan, result) and session.dialog() is None:
            result = await self._describe_arrival(session, result)
        if NEEDS_CREDENTIALS in result.message:
            await anyio.sleep(_PROMPT_SECONDS)
        requester = Requester(subject=principal.subject, session_id=plan.session_id)
        denials = self.denials_since(requester, session.denials_reported_until)
        result, denial_notes = report_policy_denials(result, denials, started_at)
        session.denials_reported_until = self.clock.monotonic()
        new_tabs = [tab.tab_id for tab in session.tabs() if tab.tab_id not in tabs_before]
        notes += denial_notes
        notes += [f"a new tab {tab_id} opened; use: tab switch {tab_id}" for tab_id in new_tabs]
        notes += [f"the page showed an alert: {text!r}" for text in session.take_alerts()]
        dialog = session.dialog()
        notes += [dialog.note()] if dialog is not None and dialog is not dialog_before else []
        return _with_notes(result, notes)

    async def _run_in_tab(
        self, session: Session, plan: BrowserCommand, deadline: float, *, is_new_tab: bool
    ) -> CommandResult:
        try:
            entry = entry_of(plan)
            if entry.run is not None:
                return await self._run_on_page(session, plan, entry.run, entry.effect, deadline)
            await self._bind_driver(session)
            if is_new_tab:
                # The daemons of other sessions attach to every new page.
                await self.driver.wait_for_idle_daemons(except_for=session.name)
            return await self._execute(session, plan, deadline)
        except (TimeoutError, anyio.get_cancelled_exc_class()):
            # After a timeout or a cancellation, the next call of this session must find a page that replies.
            with anyio.move_on_after(_RECOVERY_SECONDS, shield=True):
                await session.abandon_page()
            raise

    async def _describe_arrival(self, session: Session, result: CommandResult) -> CommandResult:
        with suppress(BrowserUnavailable, DevToolsError), PageWatch(session, dialog_grace_seconds=0):
            return await describe_arrival(await session.page(), result)
        return result

    async def _run_on_page(
        self, session: Session, plan: BrowserCommand, run: PageCommand, effect: Effect, deadline: float
    ) -> CommandResult:
        """Run a page command. Stop waiting when a dialog blocks the page or the tab closes.

        Raises: DialogOpen, BrowserUnavailable.
        """
        watch = PageWatch(session, dialog_grace_seconds=_PAGE_DIALOG_GRACE_SECONDS)
        try:
            with watch:
                page = await session.page()
                page.seconds_left = max(0.001, deadline - self.clock.monotonic() - _WAIT_MARGIN_SECONDS)
                return await run_on_page(page, plan, run, effect)
        except DevToolsError as problem:
            # The event that reports a closed tab may arrive after the reply.
            with anyio.move_on_after(GONE_GRACE_SECONDS):
                await session.wait_until_active_tab_closes()
                return tab_closed_by(plan)
            return page_replaced(problem)
        except BrowserUnavailable:
            if await session.wait_for_browser_end():
                raise
            return CommandResult(
                exit_code=ErrorCode.OUTPUT_TOO_LARGE.exit_code,
                error=ErrorCode.OUTPUT_TOO_LARGE,
                message="the page is too large to be read at once",
            )
        if watch.dialog is not None:
            if effect is Effect.CHANGE:
                return CommandResult(exit_code=0, data={"dialogOpened": True})
            raise watch.dialog.error()
        if await session.wait_for_browser_end():
            raise BrowserUnavailable("the browser ended while the command ran")
        return tab_closed_by(plan)

    async def _bind_driver(self, session: Session) -> None:
        """Point the driver at the session's active tab.

        Raises: SandboxUnavailable; BrowserUnavailable when the browser has ended.
        """
        try:
            await self._point_driver(session, session.active_target_id)
        except SandboxUnavailable as fault:
            if await session.wait_for_browser_end():
                raise BrowserUnavailable("the browser ended while its driver was starting") from fault
            raise

    async def _point_driver(self, session: Session, target_id: str) -> None:
        if await self.driver.make_ready(session.name, target_id):
            session.driver_target_id = target_id
        if session.driver_target_id != target_id:
            reply = await self.driver.run(session.name, SwitchTab(tab_id=target_id), seconds=_RECOVERY_SECONDS)
            if not reply.success:
                raise SandboxUnavailable(f"the driver cannot reach the tab: {reply.error}")
            session.driver_target_id = target_id

    async def _execute(self, session: Session, plan: BrowserCommand, deadline: float) -> CommandResult:
        if plan.name == "pdf":
            return await self._make_pdf(session, plan)
        seconds = deadline - self.clock.monotonic()
        action = driver_action(plan, wait_ms=max(1, int((seconds - _WAIT_MARGIN_SECONDS) * 1000)))
        if plan.name in NAVIGATION:
            return await self._navigate(session, plan, action, seconds=seconds)
        return await self._interpret_reply(session, plan, await self._drive(session, plan, action))

    async def _await_first_controls(self, session: Session, result: CommandResult) -> CommandResult:
        """Wait until a page that is built by scripts shows its first controls; add a note if it shows none."""
        with suppress(DevToolsError, BrowserUnavailable), PageWatch(session, dialog_grace_seconds=0):
            if await wait_for_first_controls(await session.page()):
                return result
        note = "the page shows no controls yet; if it is still loading, use wait --text TEXT or wait CSS"
        return _with_notes(result, [note])

    async def _navigate(
        self, session: Session, plan: BrowserCommand, action: Action, *, seconds: float
    ) -> CommandResult:
        """Navigate with the driver. Stop waiting when the page is there, but not all of its resources.

        Raises: as `_drive`.
        """
        page = await session.page()
        if (problem := await history_problem(page, plan)) is not None:
            return problem
        watch = LoadWatch(page, seconds=seconds)
        with watch:
            reply = await self._drive(session, plan, action)
            if watch.was_stopped and not reply.success:
                return no_answer(plan)
            result = await self._interpret_reply(session, plan, reply)
        if watch.is_loading:
            self.driver.detach(session.name)  # The daemon still waits for the rest of the page.
            return await still_loading(page)
        is_opened = plan.name == "open" and result.error is None
        return await self._await_first_controls(session, result) if is_opened else result

    async def _drive(self, session: Session, plan: BrowserCommand, action: Action) -> DriverReply:
        """Run an action with the driver. Stop waiting when a dialog blocks the page or the tab closes.

        The driver itself would wait until another call answers the dialog, or forever after the tab has closed.

        Raises: DialogOpen, BrowserUnavailable, SandboxUnavailable.
        """
        grace_seconds = 0.0 if plan.name in _CONTINUES_AFTER_DIALOG else DIALOG_GRACE_SECONDS
        watch = PageWatch(session, dialog_grace_seconds=grace_seconds)
        try:
            with watch:
                return await self._run_driver(session, plan, action)
        except SandboxUnavailable as fault:
            if await session.wait_for_browser_end():
                raise BrowserUnavailable("the browser ended while the command ran") from fault
            # The page is closed too: a new daemon would wait for it if it is still loading.
            await session.abandon_page()
            raise SandboxUnavailable(
                "the driver ended while the command ran; the page was closed", advice="Begin again with open."
            ) from fault
        if watch.dialog is not None:
            if plan.name in _CONTINUES_AFTER_DIALOG:
                self.driver.detach(session.name)
            raise watch.dialog.error()
        # Detached, not killed: killing the daemon would dismiss a dialog that is open in another tab.
        self.driver.detach(session.name)
        if await session.wait_for_browser_end():
            raise BrowserUnavailable("the browser ended while the command ran")
        return TAB_GONE

    async def _run_driver(self, session: Session, plan: BrowserCommand, action: Action) -> DriverReply:
        """Run an action; repeat it while the daemon refuses because of an alert, which is closed within milliseconds.

        Raises: DialogOpen, SandboxUnavailable.
        """
        give_up_at = self.clock.monotonic() + _ALERTS_SECONDS
        while True:
            # `run_step` enforces the deadline. This timeout is a fallback.
            reply = await self.driver.run(session.name, action, seconds=plan.timeout_seconds + _RECOVERY_SECONDS)
            if not refused_for_dialog(reply):
                return reply
            if (dialog := session.dialog()) is not None:
                raise dialog.error()
            if self.clock.monotonic() > give_up_at:
                self.driver.detach(session.name)  # The daemon may have missed the end of a dialog.
                return reply
            await anyio.sleep(_ALERT_POLL_SECONDS)

    async def _interpret_reply(self, session: Session, plan: BrowserCommand, reply: DriverReply) -> CommandResult:
        if reply.success:
            return succeeded(plan, reply)
        if plan.name in _HISTORY and "navigated or closed" in reply.error:
            # The navigation happened; the driver lost the connection to the previous document.
            reply = await self.driver.run(session.name, PageAction(action="url"), seconds=_RECOVERY_SECONDS)
            return succeeded(plan, reply) if reply.success else failed(plan, reply)
        if outcome_is_unknown(reply):
            # `_run_in_tab` closes the page and kills the daemon after a timeout.
            raise ExecutionTimedOut("the page did not answer and was closed; cookies are kept", advice=_REOPEN_ADVICE)
        if lost_its_page(reply):
            # The event that reports the closed tab may arrive after the reply.
            with anyio.move_on_after(GONE_GRACE_SECONDS):
                await session.wait_until_active_tab_closes()
                return tab_closed(plan, reply)
        return failed(plan, reply)

    async def _make_pdf(self, session: Session, plan: BrowserCommand) -> CommandResult:
        path = session.directory / f"{secrets.token_hex(8)}.pdf"
        reply = await self._drive(session, plan, Pdf(path=str(path)))
        result = await self._interpret_reply(session, plan, reply)
        if result.error is not None:
            return result
        max_bytes = self.output.max_pdf_bytes
        content = await anyio.to_thread.run_sync(lambda: take_file(path, max_bytes=max_bytes))
        return replace(
            result,
            data={"attached": "application/pdf", "bytes": len(content)},
            attachments=(Attachment(mime_type="application/pdf", content=content, name="pdf.pdf"),),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSession:
    """A session that is reserved for one call. No other call of the session runs in the meantime."""

    sandbox: BrowserSandbox
    session: Session
    deadline: float
    """Monotonic seconds. All steps of the call share it."""

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        """Run one step. Raises: the errors of `BrowserSandbox.run`."""
        return await self.sandbox.run_step(call.principal, self.session, plan, self.deadline)


def _timed_out(plan: BrowserCommand, *, has_started: bool) -> ExecutionTimedOut:
    if not has_started:
        outcome = "it waited for another call of its session and did nothing"
        advice = "Wait until the other call has ended, or use another session_id."
    elif plan.name in _KEEPS_PAGE_AFTER_TIMEOUT:
        outcome, advice = "whether it was done is not known", "Use tab list to see what is open, then repeat it."
    else:
        outcome, advice = "its page was closed, cookies are kept", _REOPEN_ADVICE
    return ExecutionTimedOut(f"{plan.name} was not finished within {plan.timeout_seconds} s; {outcome}", advice=advice)


def _with_notes(result: CommandResult, notes: Sequence[str]) -> CommandResult:
    if not notes:
        return result
    text = "\n".join(f"NOTE: {note}" for note in notes)
    return replace(result, message=f"{result.message}\n{text}" if result.message else text)
