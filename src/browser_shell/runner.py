"""Selection of the backend that executes a plan."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.calls import BrowserCommand, CommandResult, ContainerJob, Plan, ToolCall
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.ports import ReportProgress, Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRunner:
    """Executes each plan with the backend for its kind. A server has only the backend of its profile."""

    browser: Runner[BrowserCommand] | None = None
    containers: Runner[ContainerJob] | None = None

    async def run(self, call: ToolCall, plan: Plan, report_progress: ReportProgress) -> CommandResult:
        """Raises: all errors of the backend; SandboxUnavailable if this server has no backend for the plan."""
        if isinstance(plan, BrowserCommand):
            if self.browser is not None:
                return await self.browser.run(call, plan, report_progress)
        elif self.containers is not None:
            return await self.containers.run(call, plan, report_progress)
        raise SandboxUnavailable(f"this server has no backend for {plan.name}")
