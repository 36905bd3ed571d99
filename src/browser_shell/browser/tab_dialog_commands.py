"""The commands that are answered over DevTools: `tab`, so that a session sees only its own, and `dialog`."""

from __future__ import annotations

from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.ports import BrowserSession
from browser_shell.core.results import CommandResult


async def run_tab(session: BrowserSession, plan: BrowserCommand) -> CommandResult:
    """`tab list`, `tab switch tN`, `tab close [tN]`."""
    action = plan.operands[0]
    if action == "list":
        return await _listing(session)
    if len(plan.operands) > 1:
        target = session.target_of(plan.operands[1])
        if target is None:
            known = ", ".join(tab.tab_id for tab in session.tabs())
            return _failed(f"this session has no tab {plan.operands[1]}; it has: {known}")
    else:
        target = session.active
    if action == "switch":
        session.active = target
        await session.prepare(starts_page=False)
    else:
        if len(session.tabs()) == 1:
            return _failed("this is the session's only tab; use close to end the session")
        await session.close_tab(target)
        await session.prepare(starts_page=False)
    return await _listing(session)


async def run_dialog(session: BrowserSession, plan: BrowserCommand) -> CommandResult:
    """`dialog status`, `dialog accept [text]`, `dialog dismiss`."""
    action, dialog = plan.operands[0], session.dialog()
    if action == "status":
        shown: JsonObject = {"open": dialog is not None}
        if dialog is not None:
            shown |= {"type": dialog.kind, "message": dialog.message}
        return CommandResult(exit_code=0, data=shown)
    if dialog is None:
        return _failed("no dialog is open")
    text = plan.operands[1] if len(plan.operands) > 1 else None
    await session.answer_dialog(accept=action == "accept", text=text)
    return CommandResult(exit_code=0, data={"answered": action, "type": dialog.kind})


async def _listing(session: BrowserSession) -> CommandResult:
    await session.refresh_tabs()
    tabs: list[JsonValue] = [
        {"tab": tab.tab_id, "active": tab.active, "title": tab.title, "url": tab.url} for tab in session.tabs()
    ]
    return CommandResult(exit_code=0, data={"tabs": tabs})


def _failed(message: str) -> CommandResult:
    return CommandResult(exit_code=ErrorCode.COMMAND_FAILED.exit_code, error=ErrorCode.COMMAND_FAILED, message=message)
