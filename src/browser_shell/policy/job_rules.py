"""Rules for jobs: the policy document applied to a plan. A hook may have changed the plan, so all of it is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.core.decisions import Decision, IpAddress, denied
from browser_shell.policy.document import JOB_TOOLS, PolicyDocument
from browser_shell.policy.job_arguments import is_expression, is_plain_path, is_text, path_of

_TOOL_OF = {
    JobRunner.PYTEST: "run_pytest",
    JobRunner.PLAYWRIGHT_PYTHON: "run_playwright",
    JobRunner.PLAYWRIGHT_NODE: "run_playwright",
}


class JobPolicy:
    """Judges jobs by one policy document."""

    def __init__(self, document: PolicyDocument) -> None:
        self._tools = frozenset(JOB_TOOLS if document.tools.allowlist is None else document.tools.allowlist)
        self._playwright = document.playwright
        self._timeout_seconds = document.sandbox.timeout_seconds

    @property
    def tools(self) -> frozenset[str]:
        """Tools that this policy allows."""
        return self._tools

    def hosts_to_resolve(self, plan: ContainerJob, /) -> Sequence[str]:
        """Return no hosts: jobs have no network."""
        return ()

    def decide(self, plan: ContainerJob, answers: Mapping[str, Sequence[IpAddress]], /) -> Decision:
        return (
            self._judge_tool(plan)
            or self._judge_artifacts(plan)
            or _judge_selection(plan)
            or self._judge_timeout(plan)
            or Decision(allowed=True, rule_id="job.allowed", reason=f"{plan.name} is allowed")
        )

    def _judge_tool(self, plan: ContainerJob) -> Decision | None:
        if plan.name not in self._tools:
            return denied("tools.allowlist", f"{plan.name} is not in tools.allowlist")
        if _TOOL_OF[plan.runner] != plan.name:
            return denied("job.mismatch", f"{plan.name} does not run {plan.runner.value}")
        return None

    def _judge_artifacts(self, plan: ContainerJob) -> Decision | None:
        for name in ("screenshots", "videos", "traces"):
            if getattr(plan, name) and not getattr(self._playwright, name):
                return denied(f"playwright.{name}", f"playwright.{name} is off")
        return None

    def _judge_timeout(self, plan: ContainerJob) -> Decision | None:
        if not 1 <= plan.timeout_seconds <= self._timeout_seconds:
            return denied("sandbox.timeout_seconds", f"a job may take at most {self._timeout_seconds} s")
        return None


def _judge_selection(plan: ContainerJob) -> Decision | None:
    """Check the grammar again, so that no value can become an option or lead outside the workspace."""
    node = plan.runner is JobRunner.PLAYWRIGHT_NODE
    is_valid = is_text if node else is_expression
    if plan.project != "." and not is_plain_path(plan.project):
        return denied("job.selection", "the project is not a plain relative path")
    if any(path_of(test, node=node) is None for test in plan.tests):
        return denied("job.selection", "a test is not a plain relative path")
    if any(text and not is_valid(text) for text in (plan.keyword, plan.markers)):
        return denied("job.selection", "a selection is outside the grammar")
    return None
