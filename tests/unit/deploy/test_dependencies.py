"""docs/reference/dependencies.md names every external part that this project installs."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8").lower()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[^A-Za-z0-9_.-]", line.strip())[0].lower() for line in requirements]


def parts_of_the_job_image() -> list[str]:
    folder = ROOT / "deploy" / "jobs"
    lines = (folder / "requirements.in").read_text(encoding="utf-8").splitlines()
    packages = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
    python = names([line for line in lines if line and not line.startswith("#")])
    return python + [name.split("/")[0].lstrip("@") for name in packages]


def parts_of_the_conformance_suite() -> list[str]:
    packages = json.loads((ROOT / "tests" / "conformance" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    # `npm:package@version` where one package is installed under two names.
    return [source.removeprefix("npm:").rpartition("@")[0] or name for name, source in packages.items()]


@pytest.mark.parametrize(
    "name",
    [
        *names(PROJECT["project"]["dependencies"]),
        *names(PROJECT["dependency-groups"]["dev"]),
        *parts_of_the_job_image(),
        *parts_of_the_conformance_suite(),
    ],
)
def test_every_part_is_listed(name: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", PAGE)
