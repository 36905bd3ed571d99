"""The one place where a plan finds what runs it."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.calls import ToolCall
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.plans import BrowserCommand, Plan
from browser_shell.core.ports import JobSandbox, ReportProgress, Sandbox
from browser_shell.core.results import CommandResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRunner:
    """Plan kind → backend. A server has the backends of its profile, and no others."""

    browser: Sandbox | None = None
    containers: JobSandbox | None = None

    async def run(self, call: ToolCall, plan: Plan, tell: ReportProgress) -> CommandResult:
        """Raises: what the backend raises; SandboxUnavailable when this server has none for such a plan."""
        if isinstance(plan, BrowserCommand):
            if self.browser is not None:
                return await self.browser.run(call.principal, plan)
        elif self.containers is not None:
            return await self.containers.run(call, plan, tell)
        raise SandboxUnavailable(f"this server has nothing that could run {plan.name}")
