"""Report a page that did not load because of the egress policy, or because its host did not accept a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from browser_shell.browser.navigation_errors import DENIED_ADVICE, EMPTY_WITH_STATUS
from browser_shell.core.calls import CommandResult
from browser_shell.core.decisions import NO_ANSWER_RULE, UNREACHABLE_RULE, Denial, refusal_type
from browser_shell.core.errors import ErrorCode

_MAX_NOTES = 5
_TUNNEL_FAILED = "net::ERR_TUNNEL_CONNECTION_FAILED"
"""Chromium's error when the proxy denies an https connection, or cannot make it."""
_EMPTY_ANSWERS = (EMPTY_WITH_STATUS, "HTTP status 502")
"""The proxy answers an http request with an empty page when the host does not accept a connection."""
_UNREACHABLE_ADVICE = "Check the host and the port of the URL. If they are right, the server is down: try again later."
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ERROR_PAGE = "chrome-error:"
_ERROR_PAGE_NOTE = "NOTE: the tab shows an error page of the browser; use back, or open another page"
_BLOCKED_URL = "about:blank#blocked"
"""Replaces the URL of Chromium's error page. Chromium itself uses it for other blocked navigations."""


def report_policy_denials(
    result: CommandResult, denials: Sequence[Denial], started_at: float
) -> tuple[CommandResult, list[str]]:
    """Return the denial that caused a result in place of the result, or else the result and a note for each denial.

    `denials` are those not yet reported. Only those at `started_at` or later can have been caused by the command.
    """
    cause = _cause(result, [denial for denial in denials if denial.at >= started_at])
    if cause is not None:
        return _denied(f"{_kind(cause)}: {cause.reason}", cause.rule_id), []
    refused = [denial for denial in denials if denial.rule_id != UNREACHABLE_RULE]
    notes = [*dict.fromkeys(f"{_kind(d)}: {d.host} ({d.reason}; rule {d.rule_id})" for d in refused)]
    more = [f"{len(notes) - _MAX_NOTES} more connections were denied"] if len(notes) > _MAX_NOTES else []
    return _without_error_page(result), [*notes[:_MAX_NOTES], *more]


def _kind(denial: Denial) -> str:
    kinds = {NO_ANSWER_RULE: "host not found", UNREACHABLE_RULE: "the page could not be loaded"}
    return kinds.get(denial.rule_id, "blocked by egress policy")


def _cause(result: CommandResult, denials: Sequence[Denial]) -> Denial | None:
    """The denial that made the command fail, or that replaced the page it opened."""
    if result.error is ErrorCode.COMMAND_FAILED and _TUNNEL_FAILED in result.message and denials:
        return denials[-1]
    if result.error is ErrorCode.COMMAND_FAILED and any(text in result.message for text in _EMPTY_ANSWERS):
        return next((denial for denial in reversed(denials) if denial.rule_id == UNREACHABLE_RULE), None)
    url = _text(result, "url")
    if result.error is not None or not url:
        return None
    if url.startswith(_ERROR_PAGE) and denials:
        return denials[-1]
    endpoint = _host_and_port(url)
    return next((denial for denial in denials if (denial.host, denial.port) == endpoint), None)


def _without_error_page(result: CommandResult) -> CommandResult:
    """Replace the URL of Chromium's error page, with a note."""
    if result.error is not None or not _text(result, "url").startswith(_ERROR_PAGE):
        return result
    data = result.data if isinstance(result.data, dict) else {}
    return replace(result, data={**data, "url": _BLOCKED_URL}, message=_ERROR_PAGE_NOTE)


def _text(result: CommandResult, name: str) -> str:
    value = result.data.get(name) if isinstance(result.data, dict) else None
    return value if isinstance(value, str) else ""


def _host_and_port(url: str) -> tuple[str, int]:
    """Host and port in the form that denials use."""
    parts = urlsplit(url)
    return (parts.hostname or "").removesuffix("."), parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)


def _denied(message: str, rule_id: str) -> CommandResult:
    unreachable = rule_id == UNREACHABLE_RULE
    code = ErrorCode.COMMAND_FAILED if unreachable else refusal_type(rule_id).code
    advice = _UNREACHABLE_ADVICE if unreachable else DENIED_ADVICE if code is ErrorCode.POLICY_BLOCKED else ""
    return CommandResult(exit_code=code.exit_code, error=code, rule_id=rule_id, message=message, advice=advice)
