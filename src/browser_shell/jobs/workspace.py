"""The directory whose tests are run. Jobs see it read-only, and no path of a caller may lead out of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.core.errors import ArgumentsInvalid, SandboxViolation
from browser_shell.policy.jobs import path_of
from browser_shell.policy.messages import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """`root` is a resolved path without links."""

    root: Path

    def require_paths(self, plan: ContainerJob) -> None:
        """Check that every path of the plan exists inside the workspace, after links are resolved.

        In its container the job could not follow a link outside anyway. But "no such test" for such a link would
        reveal which files exist outside.

        Raises: ArgumentsInvalid, SandboxViolation.
        """
        project = self._require(self.root, plan.project, "project")
        if not project.is_dir():
            raise ArgumentsInvalid(f"project: {quoted(plan.project)} is not a directory", rule_id="workspace.missing")
        node = plan.runner is JobRunner.PLAYWRIGHT_NODE
        for index, test in enumerate(plan.tests):
            self._require(project, path_of(test, node=node) or "..", f"tests[{index}]")

    def _require(self, above: Path, path: str, field: str) -> Path:
        try:
            resolved = Path(os.path.realpath(above / path))
            if not resolved.is_relative_to(self.root):
                raise SandboxViolation(
                    f"{field}: {quoted(path)} leads out of the workspace", rule_id="workspace.outside"
                )
            if not resolved.exists():
                raise ArgumentsInvalid(
                    f"{field}: there is no {quoted(path)} in the workspace", rule_id="workspace.missing"
                )
        except OSError as cause:
            # A directory that this server may not enter, a name that is too long, or a loop of links.
            raise ArgumentsInvalid(
                f"{field}: {quoted(path)} cannot be looked up in the workspace: {cause.strerror}",
                rule_id="workspace.missing",
            ) from cause
        return resolved
