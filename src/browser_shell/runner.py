"""Select the backend of a plan by its kind: the browser, or the containers of the write profile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from browser_shell.core.calls import BrowserCommand, CommandResult, ContainerJob, Plan, ToolCall
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.ports import ReportProgress, Runner, StepRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRunner:
    """Executes each plan with the backend for its kind. A server has only the backend of its profile."""

    browser: StepRunner[BrowserCommand] | None = None
    containers: Runner[ContainerJob] | None = None

    async def run(self, call: ToolCall, plan: Plan, report_progress: ReportProgress) -> CommandResult:
        """Raises: all errors of the backend; SandboxUnavailable if this server has no backend for the plan."""
        if isinstance(plan, BrowserCommand):
            if self.browser is not None:
                return await self.browser.run(call, plan, report_progress)
        elif self.containers is not None:
            return await self.containers.run(call, plan, report_progress)
        raise _no_backend(plan)

    @asynccontextmanager
    async def hold(self, call: ToolCall, plan: Plan) -> AsyncIterator[_HeldBrowser]:
        """Reserve the session of a browser command; jobs have no steps. Raises: all errors of the backend."""
        if not isinstance(plan, BrowserCommand) or self.browser is None:
            raise _no_backend(plan)
        async with self.browser.hold(call, plan) as browser:
            yield _HeldBrowser(browser=browser)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldBrowser:
    """Executes the steps of one call in a reserved session."""

    browser: Runner[BrowserCommand]

    async def run(self, call: ToolCall, plan: Plan, report_progress: ReportProgress) -> CommandResult:
        if not isinstance(plan, BrowserCommand):
            raise _no_backend(plan)
        return await self.browser.run(call, plan, report_progress)


def _no_backend(plan: Plan) -> SandboxUnavailable:
    return SandboxUnavailable(f"this server has no backend for {plan.name}")
