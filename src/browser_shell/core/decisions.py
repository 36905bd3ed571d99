"""Decisions of a policy, and the error that a refusal becomes."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.errors import CallRefused, NameNotResolved, PolicyBlocked

NO_ANSWER_RULE = "dns.no_answer"
"""Rule id of a host name without addresses. Such a name is refused, but no policy forbids it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer of a policy. `rule_id` is stable; `reason` is written for people and models."""

    allowed: bool
    rule_id: str
    reason: str


def denied(rule_id: str, reason: str) -> Decision:
    return Decision(allowed=False, rule_id=rule_id, reason=reason)


def refusal_type(rule_id: str) -> type[CallRefused]:
    """Return the error class of refusals by this rule."""
    return NameNotResolved if rule_id == NO_ANSWER_RULE else PolicyBlocked


def refusal_of(decision: Decision) -> CallRefused:
    """Return the error for a decision that refuses."""
    return refusal_type(decision.rule_id)(decision.reason, rule_id=decision.rule_id)
