"""What the driver said, in this product's words and codes."""

from __future__ import annotations

from browser_shell.browser.driver.reply import TAB_GONE, DriverReply
from browser_shell.core.errors import ErrorCode
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.results import CommandResult

# The driver's sentences that mean: the browser is not there. They name ports and addresses, so they are not shown.
_NO_BROWSER = (
    "CDP connection closed",
    "CDP discovery",
    "CDP response channel closed",
    "Failed to connect",
    "Connection refused",
    "WebSocket",
    "Browser not launched",
)

_ONE_ACT = frozenset({"click", "dblclick", "press"})
"""What a text would be after half of it nobody knows; these are done or not."""


def succeeded(reply: DriverReply) -> CommandResult:
    notice = f"NOTE: {reply.warning}" if reply.warning else ""
    return CommandResult(exit_code=0, data=reply.data, message=notice)


def failed(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    """A command that the browser refused or could not do is a result, not a fault."""
    code, message = _meaning(plan, reply)
    return CommandResult(exit_code=code.exit_code, error=code, message=message)


def lost_its_page(reply: DriverReply) -> bool:
    """The page went away under the command, by closing or otherwise."""
    return "Session with given id not found" in reply.error


def tab_closed(plan: BrowserCommand, reply: DriverReply) -> CommandResult:
    """A tab that closes upon a click or a key was still given it: that is what such a button is for."""
    if plan.name in _ONE_ACT and reply.error.startswith("CDP error (Input."):
        return CommandResult(
            exit_code=0, data={"tab_closed": True}, message="NOTE: the tab closed while the command ran"
        )
    return failed(plan, TAB_GONE)


def _meaning(plan: BrowserCommand, reply: DriverReply) -> tuple[ErrorCode, str]:
    if reply.code == "output_too_large":
        return ErrorCode.OUTPUT_TOO_LARGE, reply.error
    if reply.code == "unreadable":
        return ErrorCode.DRIVER_UNAVAILABLE, "the driver gave no readable answer"
    if reply.code == "tab_gone":
        return (
            ErrorCode.SESSION_GONE,
            "the tab closed while the command ran, perhaps because of it; the session goes on",
        )
    if any(sign in reply.error for sign in _NO_BROWSER):
        return ErrorCode.BROWSER_UNAVAILABLE, "the browser went away while the command ran"
    if plan.name == "wait" and "timed out" in reply.error:
        return (
            ErrorCode.TIMEOUT,
            f"what you waited for did not come within {plan.timeout_seconds} s; the page is untouched",
        )
    return ErrorCode.COMMAND_FAILED, reply.error
