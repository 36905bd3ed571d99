"""Parse a reply of agent-browser's daemon."""

from __future__ import annotations

import json
from dataclasses import dataclass

from browser_shell.core.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReply:
    """The outcome of one action."""

    success: bool
    data: JsonValue = None
    error: str = ""
    code: str = ""
    """A code of the driver, for example `tab_gone`, or `unreadable` and `output_too_large` of our own."""
    warning: str = ""


TAB_GONE = DriverReply(success=False, error="the tab is gone", code="tab_gone")
"""Stands in for the reply of a daemon that does not notice that its tab has closed."""
TOO_LARGE = DriverReply(success=False, error="the output was larger than the server reads", code="output_too_large")


def parse_reply(line: bytes) -> DriverReply:
    """Never raises: a line that cannot be parsed becomes a failure with the code `unreadable`."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        return DriverReply(success=False, error="the driver's reply is not a JSON object", code="unreadable")
    data = reply.get("data")
    # The driver reports success for an action that waits for a confirmation, although nothing ran.
    unconfirmed = isinstance(data, dict) and bool(data.get("confirmation_required"))
    success = reply.get("success") is True and not unconfirmed
    error = _text(reply.get("error")) or ("a confirmation is required" if unconfirmed else "no reason was given")
    return DriverReply(
        success=success,
        data=data,
        error="" if success else error,
        code=_text(reply.get("code")),
        warning=_text(reply.get("warning")),
    )


def _text(value: JsonValue | None) -> str:
    return value if isinstance(value, str) else ""
