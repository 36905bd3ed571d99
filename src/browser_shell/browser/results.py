"""Turn a reply of the driver into a result with our own codes and messages."""

from __future__ import annotations

from browser_shell.browser.driver.connection import TAB_GONE, DriverReply
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
"""Parts of driver errors that mean that the browser is gone. They contain ports and addresses, so clients do not see
them."""

_SINGLE_INPUT = frozenset({"click", "dblclick", "press"})
"""Commands that are either done or not. A tab that closes during `type` may have received half of the text."""


def succeeded(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    data = reply.data
    if plan.name == "wait" and plan.options.get("state") == "hidden":
        data = {"waited": "hidden", "selector": plan.operands[0]}
    return CommandResult(exit_code=0, data=data, message=f"NOTE: {reply.warning}" if reply.warning else "")


def failed(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    """A command that the browser refused or could not carry out is a result, not a fault."""
    code, message = _code_and_message(plan, reply)
    return CommandResult(exit_code=code.exit_code, error=code, message=message)


def is_wedged(reply: DriverReply) -> bool:
    """Whether the page did not answer the driver, so that the outcome of the command is not known."""
    return reply.code in ("outcome_unknown", "page_wedged") or reply.error.startswith("CDP command timed out")


def lost_its_page(reply: DriverReply) -> bool:
    """Whether the page went away while the command ran."""
    return "Session with given id not found" in reply.error


def tab_closed(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    """A click or key press that closes its tab is a success: the page received the input."""
    if plan.name in _SINGLE_INPUT and reply.error.startswith("CDP error (Input."):
        return CommandResult(
            exit_code=0, data={"tab_closed": True}, message="NOTE: the tab closed while the command ran"
        )
    return failed(plan, TAB_GONE)


def _code_and_message(plan: BrowserCommand, reply: DriverReply) -> tuple[ErrorCode, str]:
    if reply.code == "output_too_large":
        return ErrorCode.OUTPUT_TOO_LARGE, reply.error
    if reply.code == "unreadable":
        return ErrorCode.DRIVER_UNAVAILABLE, "the driver gave no readable answer"
    if reply.code == "tab_gone":
        return (
            ErrorCode.SESSION_GONE,
            "the tab closed while the command ran, perhaps because of it; the session goes on",
        )
    if any(part in reply.error for part in _NO_BROWSER):
        return ErrorCode.BROWSER_UNAVAILABLE, "the browser went away while the command ran"
    if plan.name == "wait" and "timed out" in reply.error:
        return ErrorCode.TIMEOUT, f"the condition was not met within {plan.timeout_seconds} s; the page is untouched"
    return ErrorCode.COMMAND_FAILED, reply.error
