"""Gates for tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from browser_shell.core.calls import CommandResult, ToolCall
from browser_shell.core.errors import CallRefused, ErrorCode
from browser_shell.core.ports import Clock
from browser_shell.limits.gate import GateLease, LimitsGate, local_gate
from browser_shell.policy.document import LimitsSection
from browser_shell.policy.loading import policy_from
from support.fakes import FakeClock

OK = CommandResult(exit_code=0)
NEW_DOCUMENT = CommandResult(exit_code=0, shows_new_document=True)
FAILED = CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED)


def rules(**limits: object) -> LimitsSection:
    return policy_from({"limits": limits}, source="test").limits


def ids() -> Callable[[], str]:
    numbers: Iterator[int] = itertools.count(1)
    return lambda: f"lease-{next(numbers)}"


def a_local_gate(clock: Clock | None = None, **limits: object) -> LimitsGate:
    return local_gate(rules(**limits), clock=clock or FakeClock(), new_id=ids())


async def admits(gate: LimitsGate, call: ToolCall, result: CommandResult | None = OK) -> bool:
    """Run one call. Return whether it was admitted."""
    try:
        lease = await gate.admit(call)
    except CallRefused:
        return False
    await lease.settle(result)
    return True


async def refusal(gate: LimitsGate, call: ToolCall) -> CallRefused:
    with pytest.raises(CallRefused) as caught:
        await gate.admit(call)
    return caught.value


async def run_for(lease: GateLease, clock: FakeClock, seconds: float, result: CommandResult | None = OK) -> None:
    async with lease.running():
        clock.advance(seconds)
    await lease.settle(result)
