"""The directory whose tests are run. Jobs see it read-only; callers name places in it, and never lead out of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from browser_shell.core.errors import ArgumentsInvalid, SandboxViolation
from browser_shell.core.plans import ContainerJob, JobRunner
from browser_shell.policy.job_arguments import path_of
from browser_shell.policy.messages import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """`root` is a real path: the operator chose it, and no link is left in it."""

    root: Path

    def require_places(self, plan: ContainerJob) -> None:
        """Every place that the plan names is there, and still there after links are followed.

        The job itself could follow a link no further than its container goes. But a caller who is told "no such test"
        for a link that leads outside would be told about files outside.

        Raises: ArgumentsInvalid, SandboxViolation.
        """
        project = self._require(self.root, plan.project, "project")
        if not project.is_dir():
            raise ArgumentsInvalid(f"project: {shown(plan.project)} is not a directory", rule_id="workspace.missing")
        node = plan.runner is JobRunner.PLAYWRIGHT_NODE
        for index, test in enumerate(plan.tests):
            self._require(project, path_of(test, node=node) or "..", f"tests[{index}]")

    def _require(self, above: Path, path: str, field: str) -> Path:
        try:
            return self._look_up(above, path, field)
        except OSError as cause:
            # A directory that this server may not enter, a name longer than any file's, links without an end.
            raise ArgumentsInvalid(
                f"{field}: {shown(path)} cannot be looked up in the workspace: {cause.strerror}",
                rule_id="workspace.missing",
            ) from cause

    def _look_up(self, above: Path, path: str, field: str) -> Path:
        place = Path(os.path.realpath(above / path))
        if place != self.root and self.root not in place.parents:
            raise SandboxViolation(f"{field}: {shown(path)} leads out of the workspace", rule_id="workspace.outside")
        if not place.exists():
            raise ArgumentsInvalid(f"{field}: there is no {shown(path)} in the workspace", rule_id="workspace.missing")
        return place


def holds_any(directory: Path, places: Iterable[Path]) -> Path | None:
    """The first of these places that lies in the directory, or is it."""
    root = directory.resolve()
    return next((place for place in places if root == place.resolve() or root in place.resolve().parents), None)
