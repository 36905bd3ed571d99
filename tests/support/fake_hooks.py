"""Hooks for tests: one that adds its name, one that refuses, and two that crash."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.calls import BrowserCommand, CommandResult, Plan, ToolCall
from browser_shell.core.errors import CallRefused
from browser_shell.core.ports import PlanT


@dataclass
class NamingHook:
    """Adds its name to the plan and the result, which shows the order of the hooks."""

    name: str

    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        return BrowserCommand(
            session_id=plan.session_id,
            name=plan.name,
            operands=(*plan.operands, self.name),
            timeout_seconds=plan.timeout_seconds,
        )

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        return CommandResult(exit_code=result.exit_code, message=result.message + self.name)


class RefusingHook:
    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        raise CallRefused("not on a Sunday", rule_id="acme.sunday")


class CrashingBeforeHook:
    async def before(self, call: ToolCall, plan: PlanT) -> PlanT:
        raise ZeroDivisionError("a bug in a hook")


class CrashingAfterHook:
    async def after(self, call: ToolCall, plan: Plan, result: CommandResult) -> CommandResult:
        raise ZeroDivisionError("a bug in a hook")
