"""Which jobs may run: the policy document applied to a plan. Pure; a hook may have written the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from browser_shell.core.decisions import Decision
from browser_shell.core.plans import ContainerJob, JobRunner
from browser_shell.policy.addresses import IpAddress
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.job_arguments import is_expression, is_plain_path, is_text, path_of
from browser_shell.policy.job_sections import JOB_TOOLS

_TOOL_OF = {
    JobRunner.PYTEST: "run_pytest",
    JobRunner.PLAYWRIGHT_PYTHON: "run_playwright",
    JobRunner.PLAYWRIGHT_NODE: "run_playwright",
}


class JobPolicy:
    """One policy document, ready to judge jobs."""

    def __init__(self, document: PolicyDocument) -> None:
        self._tools = frozenset(JOB_TOOLS if document.tools.allowlist is None else document.tools.allowlist)
        self._playwright = document.playwright
        self._timeout_seconds = document.sandbox.timeout_seconds

    @property
    def tools(self) -> frozenset[str]:
        """The tools that this policy leaves."""
        return self._tools

    def needs_lookup(self, plan: ContainerJob, /) -> Sequence[str]:
        """Jobs have no network, so there is nothing to look up."""
        return ()

    def decide(self, plan: ContainerJob, answers: Mapping[str, Sequence[IpAddress]], /) -> Decision:
        return (
            self._judge_tool(plan)
            or self._judge_kept(plan)
            or _judge_selection(plan)
            or self._judge_numbers(plan)
            or Decision(allowed=True, rule_id="job.allowed", reason=f"{plan.name} is allowed")
        )

    def _judge_tool(self, plan: ContainerJob) -> Decision | None:
        if plan.name not in self._tools:
            return _denied("tools.allowlist", f"{plan.name} is not in tools.allowlist")
        if _TOOL_OF[plan.runner] != plan.name:
            return _denied("job.mismatch", f"{plan.name} does not run {plan.runner.value}")
        return None

    def _judge_kept(self, plan: ContainerJob) -> Decision | None:
        for name in ("screenshots", "videos", "traces"):
            if getattr(plan, name) and not getattr(self._playwright, name):
                return _denied(f"playwright.{name}", f"playwright.{name} is off")
        return None

    def _judge_numbers(self, plan: ContainerJob) -> Decision | None:
        if not 1 <= plan.timeout_seconds <= self._timeout_seconds:
            return _denied("sandbox.timeout_seconds", f"a job may take at most {self._timeout_seconds} s")
        return None


def _judge_selection(plan: ContainerJob) -> Decision | None:
    """The grammar once more: whatever wrote the plan, nothing in it can become an option or lead outside."""
    node = plan.runner is JobRunner.PLAYWRIGHT_NODE
    words = is_text if node else is_expression
    if plan.project != "." and not is_plain_path(plan.project):
        return _denied("job.selection", "the project is not a plain relative path")
    if any(path_of(test, node=node) is None for test in plan.tests):
        return _denied("job.selection", "a test is not a plain relative path")
    if any(text and not words(text) for text in (plan.keyword, plan.markers)):
        return _denied("job.selection", "a selection is outside the grammar")
    return None


def _denied(rule_id: str, reason: str) -> Decision:
    return Decision(allowed=False, rule_id=rule_id, reason=reason)
