"""Paths of a plan must exist inside the workspace, after links are resolved."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from browser_shell.core.errors import ArgumentsInvalid, SandboxViolation
from browser_shell.jobs.workspace import Workspace
from support.job_plans import a_job


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "workspace"
    root.mkdir()
    return Workspace(root=root)


@pytest.mark.promise("jobs:paths-stay-inside")
def test_a_link_that_leads_out_of_the_workspace_is_a_violation(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (workspace.root / "out").symlink_to(tmp_path / "elsewhere")
    (workspace.root / "p").mkdir()
    (workspace.root / "p" / "up").symlink_to("..")
    (workspace.root / "p" / "passwd.py").symlink_to("/etc/passwd")
    for job in (a_job(project="out"), a_job(project="p", tests=("passwd.py",))):
        with pytest.raises(SandboxViolation) as refused:
            workspace.require_paths(job)
        assert refused.value.rule_id == "workspace.outside"
    workspace.require_paths(a_job(project="p", tests=("up/p",)))


@pytest.mark.parametrize("job", [{"project": "none"}, {"project": "file"}, {"tests": ("none.py::a",)}])
def test_a_missing_path_is_a_bad_argument(workspace: Workspace, job: dict[str, Any]) -> None:
    (workspace.root / "file").touch()
    with pytest.raises(ArgumentsInvalid):
        workspace.require_paths(a_job(**job))


def test_a_name_that_is_too_long_is_a_bad_argument(workspace: Workspace) -> None:
    with pytest.raises(ArgumentsInvalid, match=r"^project: .*File name too long") as refused:
        workspace.require_paths(a_job(project="a" * 300))
    assert refused.value.rule_id == "workspace.missing"


def test_a_directory_without_access_is_a_bad_argument(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    real_stat = Path.stat

    def denied_stat(path: Path, **options: bool) -> os.stat_result:
        # Simulated, because root may enter every directory.
        if path.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_stat(path, **options)

    monkeypatch.setattr(Path, "stat", denied_stat)
    with pytest.raises(ArgumentsInvalid, match=r"^tests\[0\]: .*Permission denied"):
        workspace.require_paths(a_job(tests=("closed",)))
