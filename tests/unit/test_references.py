"""docs/references.md names every part that this project asks for."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCES = (ROOT / "docs" / "references.md").read_text(encoding="utf-8").lower()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[^A-Za-z0-9_.-]", line.strip())[0].lower() for line in requirements]


def of_jobs() -> list[str]:
    folder = ROOT / "deploy" / "jobs"
    lines = (folder / "requirements.in").read_text(encoding="utf-8").splitlines()
    python = names([line for line in lines if line and not line.startswith("#")])
    return python + [
        name.split("/")[0].lstrip("@") for name in json.loads((folder / "package.json").read_text())["dependencies"]
    ]


def of_judges() -> list[str]:
    parts = json.loads((ROOT / "tests" / "conformance" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    # `npm:package@version` where one part is there under two names.
    return [where.removeprefix("npm:").rpartition("@")[0] or name for name, where in parts.items()]


@pytest.mark.parametrize(
    "name",
    [*names(PROJECT["project"]["dependencies"]), *names(PROJECT["dependency-groups"]["dev"]), *of_jobs(), *of_judges()],
)
def test_every_part_is_listed_with_its_reason(name: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", REFERENCES), f"docs/references.md does not name {name}"
