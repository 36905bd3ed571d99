"""The commands that use the server's own DevTools connection: `tab`, limited to the session's tabs, and `dialog`."""

from __future__ import annotations

from contextlib import suppress

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.settle import wait_for_next_document
from browser_shell.browser.page_watch import PageWatch
from browser_shell.browser.session import Session
from browser_shell.core.calls import BrowserCommand, CommandResult
from browser_shell.core.errors import BrowserUnavailable, ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue

_ANSWER_SECONDS = 0.1
"""Time for a navigation to begin after an answer, as after any other act."""
_LEAVING_SECONDS = 1.0
"""Time for the navigation to begin that a beforeunload dialog has held up."""


async def run_tab(session: Session, plan: BrowserCommand) -> CommandResult:
    """Run `tab list`, `tab switch tN` or `tab close [tN]`. Raises: DialogOpen when the page asks whether to leave."""
    subcommand, *tab_ids = plan.operands
    if subcommand == "list":
        return await _tab_list(session)
    target_id = session.target_of(tab_ids[0]) if tab_ids else session.active_target_id
    if target_id is None:
        own_tabs = ", ".join(tab.tab_id for tab in session.tabs())
        message = f"this session has no tab {tab_ids[0]}; it has: {own_tabs}"
        return _failed(message, advice="Use one of these tabs; tab list shows their titles.")
    if subcommand == "switch":
        session.active_target_id = target_id
    elif len(session.tabs()) == 1:
        return _failed(
            "this is the session's only tab",
            advice="Use close to end the session, or open to show another page in this tab.",
        )
    elif (dialog := await session.request_tab_close(target_id)) is not None:
        raise dialog.error()
    await session.prepare(opens_page=False)
    return await _tab_list(session)


async def run_dialog(session: Session, plan: BrowserCommand) -> CommandResult:
    """Run `dialog status`, `dialog accept [text]` or `dialog dismiss`."""
    subcommand, dialog = plan.operands[0], session.dialog()
    if subcommand == "status":
        status: JsonObject = {"open": dialog is not None}
        if dialog is not None:
            status |= {"type": dialog.kind, "message": dialog.message}
        return CommandResult(exit_code=0, data=status)
    if dialog is None:
        return _failed("no dialog is open", advice="Go on with the page: nothing waits for an answer.")
    text = plan.operands[1] if len(plan.operands) > 1 else None
    page = await session.page()
    documents = page.navigations.documents
    if not await session.answer_dialog(accept=subcommand == "accept", text=text):
        message = "the dialog was closed before it could be answered, for example by a person"
        return _failed(message, advice="Take a new snapshot to see what the page shows now.")
    data: JsonObject = {"answered": subcommand, "type": dialog.kind}
    leaves = subcommand == "accept" and dialog.kind == "beforeunload"
    with suppress(BrowserUnavailable, DevToolsError), PageWatch(session, dialog_grace_seconds=0):
        if await wait_for_next_document(page, documents, seconds=_LEAVING_SECONDS if leaves else _ANSWER_SECONDS):
            url, title = await page.location()
            data |= {"url": url, "title": title}
    return CommandResult(exit_code=0, data=data)


async def _tab_list(session: Session) -> CommandResult:
    await session.refresh_tabs()
    tabs: list[JsonValue] = [
        {
            "tab": tab.tab_id,
            "active": tab.target_id == session.active_target_id,
            "title": tab.title,
            "url": tab.url,
        }
        for tab in session.tabs()
    ]
    return CommandResult(exit_code=0, data={"tabs": tabs})


def _failed(message: str, *, advice: str) -> CommandResult:
    code = ErrorCode.COMMAND_FAILED
    return CommandResult(exit_code=code.exit_code, error=code, message=message, advice=advice)
