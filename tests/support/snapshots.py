"""Reading snapshots the way an agent does: find a line, take its ref."""

from __future__ import annotations

import re


def ref_of(snapshot: str, role: str, name: str) -> str:
    """The @ref of the first element with this role and exactly this name."""
    found = re.search(rf'{role} "{re.escape(name)}"[^\n]*?ref=(e\d+)', snapshot)
    assert found, f"no {role} {name!r} in:\n{snapshot}"
    return f"@{found[1]}"


def refs_of(snapshot: str, role: str) -> list[tuple[str, str]]:
    """(name, @ref) of every element with this role, from top to bottom."""
    found = re.findall(rf'- {role}(?: "((?:[^"\\]|\\.)*)")?[^\n]*?ref=(e\d+)', snapshot)
    return [(name, f"@{ref}") for name, ref in found]
