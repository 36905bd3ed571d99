"""Reads what agent-browser printed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.process.conversation import ProcessOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReply:
    """The driver's own verdict on the last command of a batch."""

    success: bool
    data: JsonValue = None
    error: str = ""
    code: str = ""
    """The driver's code word, for example `tab_gone`; empty for most failures."""
    warning: str = ""


TAB_GONE = DriverReply(success=False, error="the tab is gone", code="tab_gone")
"""In place of a driver that does not notice."""


def read_reply(finished: ProcessOutput) -> DriverReply:
    """Never raises: what cannot be understood is a failure that says so."""
    if finished.truncated:
        return DriverReply(success=False, error="the output was larger than the server reads", code="output_too_large")
    try:
        printed = json.loads(finished.stdout)
    except (ValueError, RecursionError):
        return DriverReply(success=False, error=_first_line(finished.stderr), code="unreadable")
    last = printed[-1] if isinstance(printed, list) and printed else printed
    if not isinstance(last, dict):
        return DriverReply(success=False, error="the driver printed something unexpected", code="unreadable")
    return _from_object(last, finished.exit_code)


def _from_object(last: JsonObject, exit_code: int | None) -> DriverReply:
    data = last.get("result", last.get("data"))
    # A driver that asks for confirmation says success although nothing ran.
    waits = isinstance(data, dict) and bool(data.get("confirmation_required"))
    success = last.get("success") is True and exit_code in (0, None) and not waits
    error = "" if success else _text(last.get("error")) or ("needs a confirmation" if waits else "no reason was given")
    return DriverReply(
        success=success, data=data, error=error, code=_text(last.get("code")), warning=_text(last.get("warning"))
    )


def _text(value: JsonValue | None) -> str:
    return value if isinstance(value, str) else ""


def _first_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else "the driver printed nothing"
