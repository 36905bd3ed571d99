"""Convert replies of the driver to results with the codes and messages of this server."""

from __future__ import annotations

from browser_shell.browser.driver.connection import TAB_GONE, DriverReply
from browser_shell.browser.navigation_errors import navigation_failed, net_error_in
from browser_shell.core.calls import BrowserCommand, CommandResult
from browser_shell.core.errors import ErrorCode

_NO_BROWSER = (
    "CDP connection closed",
    "CDP discovery",
    "CDP response channel closed",
    "Failed to connect",
    "Connection refused",
    "WebSocket",
    "Browser not launched",
)
"""Substrings of driver errors that mean that the browser has ended. The errors contain ports and addresses, so clients
receive another message."""

NAVIGATION = frozenset({"open", "back", "forward", "reload"})

_READING = frozenset({"get", "is", "find", "snapshot", "wait", "screenshot", "pdf"})
"""Commands whose data may have a URL although nothing changed."""

_DIALOG_WARNING = "A JavaScript "

_SINGLE_INPUT = frozenset({"click", "dblclick", "press"})
"""Commands that cannot be half done. A tab that closes during `type` may have received only a part of the text."""


def shows_new_document(plan: BrowserCommand, result: CommandResult) -> bool:
    """Whether a command succeeded and the session shows another document, or another address, than before."""
    if result.error is not None or plan.name in _READING:
        return False
    if plan.name == "tab":
        return plan.operands[0] in ("switch", "close")
    return plan.name in NAVIGATION or (isinstance(result.data, dict) and "url" in result.data)


def succeeded(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    data = reply.data
    if plan.name == "wait" and plan.options.get("state") == "hidden":
        data = {"waited": "hidden", "selector": plan.operands[0]}
    # The sandbox reports dialogs. The driver's warning may be about an alert that is already closed.
    warning = "" if reply.warning.startswith(_DIALOG_WARNING) else reply.warning
    return CommandResult(exit_code=0, data=data, message=f"NOTE: {warning}" if warning else "")


def failed(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    """Return the result of a command that failed in the browser. It is no error of the server."""
    if plan.name in NAVIGATION and net_error_in(reply.error):
        return navigation_failed(reply.error)
    code, message, advice = _explain(plan, reply)
    return CommandResult(exit_code=code.exit_code, error=code, message=message, advice=advice)


def outcome_is_unknown(reply: DriverReply) -> bool:
    """Whether the page did not respond to the driver."""
    return reply.code in ("outcome_unknown", "page_wedged") or reply.error.startswith("CDP command timed out")


def refused_for_dialog(reply: DriverReply) -> bool:
    """Whether the daemon did nothing because it believes that a dialog is open."""
    return not reply.success and reply.error.startswith(_DIALOG_WARNING)


def lost_its_page(reply: DriverReply) -> bool:
    """Whether the page was closed while the command ran."""
    return "Session with given id not found" in reply.error


def tab_closed(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    """A click or key press that closes its tab is a success: the page received the input."""
    return tab_closed_by(plan) if reply.error.startswith("CDP error (Input.") else failed(plan, TAB_GONE)


def tab_closed_by(plan: BrowserCommand) -> CommandResult:
    """Return the result of a command during which the tab closed. A click or key press that does this succeeded."""
    if plan.name in _SINGLE_INPUT:
        return CommandResult(
            exit_code=0, data={"tab_closed": True}, message="NOTE: the tab closed while the command ran"
        )
    return failed(plan, TAB_GONE)


def _explain(plan: BrowserCommand, reply: DriverReply) -> tuple[ErrorCode, str, str]:
    """Return code, message and advice; an empty advice stands for that of the code."""
    if reply.code == "output_too_large":
        return ErrorCode.OUTPUT_TOO_LARGE, reply.error, ""
    if reply.code == "unreadable":
        return ErrorCode.DRIVER_UNAVAILABLE, "the driver's reply could not be parsed", ""
    if reply.code == "tab_gone":
        message = "the tab closed while the command ran, perhaps because of it; the session stays open"
        return ErrorCode.SESSION_GONE, message, "Use tab list to see which tabs are left, or open a page."
    if any(part in reply.error for part in _NO_BROWSER):
        return ErrorCode.BROWSER_UNAVAILABLE, "the browser ended while the command ran", ""
    if plan.name == "wait" and "timed out" in reply.error:
        message = f"the condition was not met within {plan.timeout_seconds} s; the page stays open"
        return ErrorCode.TIMEOUT, message, "Look at the page with snapshot -i: what you wait for may have another form."
    if plan.name in NAVIGATION:
        return (
            ErrorCode.COMMAND_FAILED,
            reply.error,
            "Look at what is open with get url, then repeat it or use open URL.",
        )
    return ErrorCode.COMMAND_FAILED, reply.error, ""
