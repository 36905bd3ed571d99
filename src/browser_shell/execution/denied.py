"""Says why a page did not come, when the reason is the policy and not the network."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from browser_shell.core.egress import Denial
from browser_shell.core.errors import ErrorCode
from browser_shell.core.results import CommandResult

_HOSTS_TOLD = 5


def explain_denials(result: CommandResult, denials: Sequence[Denial], began: float) -> tuple[CommandResult, list[str]]:
    """Turns a result that a refused connection spoiled into that refusal; other refusals become notices.

    `denials` are those that the agent has not been told of; the command itself caused those at `began` or later.
    """
    if not denials:
        return result, []
    caused = [denial for denial in denials if denial.at >= began]
    spoiler = _spoiler(result, caused)
    if spoiler is not None:
        return _blocked(spoiler), []
    told = dict.fromkeys(f"blocked by egress policy: {d.host} ({d.reason}; rule {d.rule_id})" for d in denials)
    lines = list(told)
    more = [f"{len(lines) - _HOSTS_TOLD} more hosts were blocked"] if len(lines) > _HOSTS_TOLD else []
    return result, [*lines[:_HOSTS_TOLD], *more]


def _spoiler(result: CommandResult, caused: Sequence[Denial]) -> Denial | None:
    """The refusal that kept the command from doing what it was asked."""
    if result.error is ErrorCode.COMMAND_FAILED and "net::ERR_" in result.message and caused:
        return caused[-1]
    landed = result.data.get("url") if isinstance(result.data, dict) else None
    if result.error is None and isinstance(landed, str):
        host = urlsplit(landed).hostname
        return next((denial for denial in caused if denial.host == host), None)
    return None


def _blocked(denial: Denial) -> CommandResult:
    return CommandResult(
        exit_code=ErrorCode.POLICY_BLOCKED.exit_code,
        error=ErrorCode.POLICY_BLOCKED,
        rule_id=denial.rule_id,
        message=f"blocked by egress policy: {denial.reason}",
    )
