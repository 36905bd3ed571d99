"""A decision is a value with a rule and a reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer of a policy. `rule_id` is stable, `reason` is for people and models."""

    allowed: bool
    rule_id: str
    reason: str
