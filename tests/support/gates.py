"""Gates for tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from browser_shell.core.ports import Clock
from browser_shell.limits.gate import LimitsGate, local_gate
from browser_shell.policy.document import LimitsSection
from browser_shell.policy.loading import policy_from
from support.fakes import FakeClock


def rules(**limits: object) -> LimitsSection:
    return policy_from({"limits": limits}, source="test").limits


def ids() -> Callable[[], str]:
    numbers: Iterator[int] = itertools.count(1)
    return lambda: f"lease-{next(numbers)}"


def a_local_gate(clock: Clock | None = None, **limits: object) -> LimitsGate:
    return local_gate(rules(**limits), clock=clock or FakeClock(), new_id=ids())
