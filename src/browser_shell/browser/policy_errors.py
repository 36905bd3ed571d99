"""Says why a page did not come, when the reason is the policy and not the network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from browser_shell.core.decisions import NO_ANSWER_RULE, refusal_type
from browser_shell.core.egress import Denial
from browser_shell.core.errors import ErrorCode
from browser_shell.core.results import CommandResult

_HOSTS_TOLD = 5
_REFUSED = "net::ERR_TUNNEL_CONNECTION_FAILED"
"""What Chromium says when the proxy refuses a host. Any other network error has a cause of its own."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,30}):")
_ERROR_PAGE = "chrome-error:"
_BLOCKED_PLACE = "about:blank#blocked"
"""What Chromium itself says in other cases where a page may not go on."""


def report_policy_denials(
    result: CommandResult, denials: Sequence[Denial], began: float
) -> tuple[CommandResult, list[str]]:
    """Turns a result that a refusal spoiled into that refusal; other refusals become notices.

    `denials` are those that the agent has not been told of; the command itself caused those at `began` or later.
    """
    caused = [denial for denial in denials if denial.at >= began]
    spoiler = _spoiler(result, caused)
    if spoiler is not None:
        return _blocked(f"{_cause(spoiler)}: {spoiler.reason}", spoiler.rule_id), []
    told = dict.fromkeys(f"{_cause(d)}: {d.host} ({d.reason}; rule {d.rule_id})" for d in denials)
    lines = list(told)
    more = [f"{len(lines) - _HOSTS_TOLD} more hosts were blocked"] if len(lines) > _HOSTS_TOLD else []
    return _without_error_page(result), [*lines[:_HOSTS_TOLD], *more]


def _cause(denial: Denial) -> str:
    return "host not found" if denial.rule_id == NO_ANSWER_RULE else "blocked by egress policy"


def _spoiler(result: CommandResult, caused: Sequence[Denial]) -> Denial | None:
    """The refusal that kept the command from doing what it was asked."""
    if result.error is ErrorCode.COMMAND_FAILED and _REFUSED in result.message and caused:
        return caused[-1]
    landed = _text(result, "url")
    if result.error is not None or not landed:
        return None
    if landed.startswith(_ERROR_PAGE) and caused:
        return caused[-1]
    place = _place(landed)
    return next((denial for denial in caused if (denial.host, denial.port) == place), None)


def _without_error_page(result: CommandResult) -> CommandResult:
    """Chromium's own error page is no place to have arrived at. Its title is the URL that did not load."""
    if result.error is not None or not _text(result, "url").startswith(_ERROR_PAGE):
        return result
    scheme = _SCHEME.match(_text(result, "title"))
    if scheme is not None and scheme[1] not in _DEFAULT_PORTS:
        return _blocked(f"the page went on to a {scheme[1]}: address; only http and https can be opened", "url.scheme")
    if isinstance(result.data, dict) and "title" not in result.data:
        return replace(result, data={**result.data, "url": _BLOCKED_PLACE})
    return CommandResult(
        exit_code=ErrorCode.COMMAND_FAILED.exit_code,
        error=ErrorCode.COMMAND_FAILED,
        message="the page went on to another one, which could not be loaded",
    )


def _text(result: CommandResult, name: str) -> str:
    value = result.data.get(name) if isinstance(result.data, dict) else None
    return value if isinstance(value, str) else ""


def _place(url: str) -> tuple[str, int]:
    """Host and port as a denial names them."""
    parts = urlsplit(url)
    return (parts.hostname or "").removesuffix("."), parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)


def _blocked(message: str, rule_id: str) -> CommandResult:
    code = refusal_type(rule_id).code
    return CommandResult(exit_code=code.exit_code, error=code, rule_id=rule_id, message=message)
