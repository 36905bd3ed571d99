"""Hooks that tests put into the chain: one that leaves its name, and three that get in the way."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import CallRefused
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.results import CommandResult


@dataclass
class NamingHook:
    """Writes its name into the plan and the result, so that a test can see the order."""

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
    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        raise ZeroDivisionError("a bug in somebody's hook")


class CrashingAfterHook:
    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        raise ZeroDivisionError("a bug in somebody's hook")
