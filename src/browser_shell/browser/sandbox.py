"""Runs one `browser-shell` command in its session, within its deadline, and leaves the session usable."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

import anyio
import structlog

from browser_shell.browser.driver.actions import driver_actions, time_to_wait
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver
from browser_shell.browser.driver.reply import TAB_GONE, DriverReply
from browser_shell.browser.page_watch import DIALOG_GRACE_SECONDS, GONE_GRACE_SECONDS, PageWatch
from browser_shell.browser.policy_errors import report_policy_denials
from browser_shell.browser.results import failed, lost_its_page, succeeded, tab_closed
from browser_shell.browser.tab_dialog_commands import run_dialog, run_tab
from browser_shell.core.calls import Principal, ToolCall
from browser_shell.core.egress import Requester
from browser_shell.core.errors import (
    BrowserShellError,
    BrowserUnavailable,
    DialogOpen,
    ErrorCode,
    ExecutionTimedOut,
    SandboxUnavailable,
)
from browser_shell.core.human_control import refuse_while_human_controls
from browser_shell.core.pages import Dialog
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.ports import BrowserSession, BrowserSessions, Clock, DenialReader, HumanControl, ReportProgress
from browser_shell.core.results import Attachment, CommandResult
from browser_shell.process.plain_files import take_file

log = structlog.get_logger()

_RECOVERY_SECONDS = 5.0
_MARGIN_SECONDS = 0.3
_DIALOG_CHARACTERS = 300
"""A wait ends this long before the deadline, so that a condition that never comes costs no page."""
_DIALOG_POLL_SECONDS = 0.02
_HIDDEN_POLL_SECONDS = 0.15
_HISTORY = frozenset({"back", "forward", "reload"})
_OUTLAST_A_DIALOG = frozenset({"wait", "open", "back", "forward", "reload"})
"""What the driver goes on with after the answer. Everything else ends then, and keeps the refs that it knows."""
_BY_DEVTOOLS = frozenset({"tab", "dialog"})
_WITHOUT_DRIVER = _BY_DEVTOOLS | {"close"}
_FILE_TYPES = {"jpeg": ("jpg", "image/jpeg"), "png": ("png", "image/png")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactLimits:
    """From the policy document."""

    screenshot_format: str
    max_image_bytes: int
    max_pdf_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSandbox:
    """The backend of `BrowserCommand` plans."""

    sessions: BrowserSessions
    driver: AgentBrowserDriver
    denials: DenialReader
    human: HumanControl
    clock: Clock
    limits: ArtifactLimits

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        """Raises: ExecutionTimedOut, SandboxUnavailable, SessionGone, TryLater."""
        deadline = self.clock.monotonic() + plan.timeout_seconds
        its_turn = plan.name == "close"
        try:
            with anyio.move_on_after(plan.timeout_seconds):
                if plan.name == "close":
                    existed = await self.sessions.close(call.principal.subject, plan.session_id)
                    return CommandResult(exit_code=0, data={"closed": existed})
                async with self.sessions.hold(call.principal.subject, plan.session_id) as session:
                    its_turn = True
                    return await self._run_held(call.principal, session, plan, deadline)
        except ExecutionTimedOut:
            raise
        except TimeoutError as late:
            raise _too_late(plan, begun=its_turn) from late
        raise _too_late(plan, begun=its_turn)

    async def _run_held(
        self, principal: Principal, session: BrowserSession, plan: BrowserCommand, deadline: float
    ) -> CommandResult:
        # Again, as this call may have stood in line behind another one of its session.
        refuse_while_human_controls(self.human)
        page_before = session.active
        notices = await session.prepare(starts_page=plan.name == "open")
        if plan.name in _BY_DEVTOOLS:
            result = await (run_tab if plan.name == "tab" else run_dialog)(session, plan)
        else:
            await self._unblocked(session)
            tabs_before = {tab.tab_id for tab in session.tabs()}
            began = self.clock.monotonic()
            try:
                await self._bind(session)
                if session.active != page_before:
                    await self.driver.settle(session.name)
                result = await self._drive(session, plan, deadline)
            except (TimeoutError, anyio.get_cancelled_exc_class()):
                # However it was cut short, the next call of this session finds a page that answers.
                with anyio.move_on_after(_RECOVERY_SECONDS, shield=True):
                    await session.abandon_page()
                raise
            requester = Requester(subject=principal.subject, session_id=plan.session_id)
            result, told = report_policy_denials(result, self.denials.since(requester, session.denials_told), began)
            session.denials_told = self.clock.monotonic()
            notices += told
            notices += [
                f"a new tab {tab.tab_id} opened; use: tab switch {tab.tab_id}"
                for tab in session.tabs()
                if tab.tab_id not in tabs_before
            ]
            notices += [f"the page showed an alert: {said!r}" for said in session.take_alerts()]
        return _with_notices(result, notices)

    async def _unblocked(self, session: BrowserSession) -> None:
        """An alert asks nothing, and the driver answers it by itself: it only blocks when it stays.

        Raises: DialogOpen.
        """
        asked = session.dialog()
        if asked is None:
            return
        with anyio.move_on_after(DIALOG_GRACE_SECONDS):
            # Nothing tells of a dialog's end.
            while asked.kind == "alert" and session.dialog() is asked:  # noqa: ASYNC110
                await anyio.sleep(_DIALOG_POLL_SECONDS)
        dialog = session.dialog()
        if dialog is not None and (dialog is asked or dialog.kind != "alert"):
            raise _blocked_by(dialog)

    async def _bind(self, session: BrowserSession) -> None:
        """Points the driver at the session's active tab.

        Raises: SandboxUnavailable; BrowserUnavailable where that is why.
        """
        try:
            await self._point_driver(session)
        except SandboxUnavailable as fault:
            if await session.browser_is_gone():
                raise BrowserUnavailable("the browser went away while its driver was made ready") from fault
            raise

    async def _point_driver(self, session: BrowserSession) -> None:
        if await self.driver.make_ready(session.name, session.active):
            session.bound = session.active
        if session.bound != session.active:
            reply = await self.driver.run(session.name, [("tab", session.active)], seconds=_RECOVERY_SECONDS)
            if not reply.success:
                raise SandboxUnavailable(f"the driver cannot reach the tab: {reply.error}")
            session.bound = session.active

    async def _drive(self, session: BrowserSession, plan: BrowserCommand, deadline: float) -> CommandResult:
        if plan.name == "wait" and plan.options.get("state") == "hidden":
            return await self._wait_until_hidden(session, plan, deadline)
        if plan.name in ("screenshot", "pdf"):
            return await self._make_file(session, plan, deadline)
        wait_ms = max(1, int((deadline - self.clock.monotonic() - _MARGIN_SECONDS) * 1000))
        result = await self._judge(session, plan, await self._ask(session, plan, deadline, wait_ms=wait_ms))
        asked = time_to_wait(plan)
        if asked is not None and asked > wait_ms and result.error is None:
            return _waited_in_vain(
                f"{asked} ms do not fit into timeout_sec {plan.timeout_seconds}; waited {wait_ms} ms"
            )
        return result

    async def _ask(
        self, session: BrowserSession, plan: BrowserCommand, deadline: float, *, file: str = "", wait_ms: int = 0
    ) -> DriverReply:
        """Runs the driver, but does not wait for it while a dialog that only another call can answer blocks the page,
        nor after the page has gone: the driver would wait for an answer that the browser no longer owes.

        Raises: DialogOpen.
        """
        trouble = PageWatch(session)
        with trouble:
            return await self.driver.run(
                session.name,
                driver_actions(plan, file=file, wait_ms=wait_ms),
                annotate="annotate" in plan.options,
                # `run` keeps the deadline; this is the net below.
                seconds=plan.timeout_seconds + _RECOVERY_SECONDS,
            )
        if trouble.dialog is not None:
            if plan.name in _OUTLAST_A_DIALOG:
                self.driver.replace_later(session.name)
            raise _blocked_by(trouble.dialog)
        # It may be asking another page of the session something, so it is not ended before the next command.
        self.driver.replace_later(session.name)
        if await session.browser_is_gone():
            raise BrowserUnavailable("the browser went away while the command ran")
        return TAB_GONE

    async def _judge(self, session: BrowserSession, plan: BrowserCommand, reply: DriverReply) -> CommandResult:
        if reply.success:
            return succeeded(reply)
        if plan.name in _HISTORY and "navigated or closed" in reply.error:
            # It did go there; the driver only lost sight of the page it came from.
            reply = await self.driver.run(session.name, [("get", "url")], seconds=_RECOVERY_SECONDS)
            return succeeded(reply) if reply.success else failed(plan, reply)
        if reply.code in ("outcome_unknown", "page_wedged"):
            # The daemon still waits for the page and would make the next call wait too.
            await session.abandon_page()
            raise ExecutionTimedOut("the page did not answer and was closed; cookies are kept")
        if lost_its_page(reply):
            with anyio.move_on_after(GONE_GRACE_SECONDS):
                await session.tab_closing()
                return tab_closed(plan, reply)
        return failed(plan, reply)

    async def _wait_until_hidden(self, session: BrowserSession, plan: BrowserCommand, deadline: float) -> CommandResult:
        """agent-browser's own `--state hidden` waits for the opposite, so ask until the answer is no."""
        probe = BrowserCommand(
            session_id=plan.session_id,
            name="is",
            operands=("visible", plan.operands[0]),
            timeout_seconds=plan.timeout_seconds,
        )
        while self.clock.monotonic() < deadline - _MARGIN_SECONDS:
            reply = await self._ask(session, probe, deadline)
            gone = not reply.success and reply.error.startswith("Element not found")
            if gone or (reply.success and isinstance(reply.data, dict) and reply.data.get("visible") is False):
                return CommandResult(exit_code=0, data={"waited": "hidden", "selector": plan.operands[0]})
            if not reply.success:
                return await self._judge(session, plan, reply)
            await anyio.sleep(_HIDDEN_POLL_SECONDS)
        return _waited_in_vain(f"still visible after {plan.timeout_seconds} s")

    async def _make_file(self, session: BrowserSession, plan: BrowserCommand, deadline: float) -> CommandResult:
        if plan.name == "pdf":
            extension, mime_type, max_bytes = "pdf", "application/pdf", self.limits.max_pdf_bytes
        else:
            extension, mime_type = _FILE_TYPES[self.limits.screenshot_format]
            max_bytes = self.limits.max_image_bytes
        path = session.directory / f"{secrets.token_hex(8)}.{extension}"
        result = await self._judge(session, plan, await self._ask(session, plan, deadline, file=str(path)))
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


def _waited_in_vain(why: str) -> CommandResult:
    return CommandResult(
        exit_code=ErrorCode.TIMEOUT.exit_code,
        error=ErrorCode.TIMEOUT,
        message=f"{why}; the page is untouched",
    )


def _too_late(plan: BrowserCommand, *, begun: bool) -> ExecutionTimedOut:
    left = "it stood behind another call and did nothing"
    if begun:
        by_driver = plan.name not in _WITHOUT_DRIVER
        left = "its page was closed, cookies are kept" if by_driver else "whether it was done is not known"
    return ExecutionTimedOut(f"{plan.name} was not finished within {plan.timeout_seconds} s; {left}")


def _blocked_by(dialog: Dialog) -> BrowserShellError:
    return DialogOpen(
        f"the page shows a {dialog.kind} dialog: {dialog.message[:_DIALOG_CHARACTERS]!r}", rule_id="page.dialog"
    )


def _with_notices(result: CommandResult, notices: list[str]) -> CommandResult:
    if not notices:
        return result
    told = "\n".join(f"NOTE: {notice}" for notice in notices)
    return replace(result, message=f"{result.message}\n{told}" if result.message else told)
