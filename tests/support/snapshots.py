"""Refs of elements in the text of a snapshot."""

from __future__ import annotations

import re


def ref_of(snapshot: str, role: str, name: str) -> str:
    """Return the @ref of the first element with this role and exactly this name."""
    match = re.search(rf'{role} "{re.escape(name)}"[^\n]*?ref=(e\d+)', snapshot)
    assert match, f"no {role} {name!r} in:\n{snapshot}"
    return f"@{match[1]}"


def refs_of(snapshot: str, role: str) -> list[tuple[str, str]]:
    """Return (name, @ref) of every element with this role, from top to bottom."""
    matches = re.findall(rf'- {role}(?: "((?:[^"\\]|\\.)*)")?[^\n]*?ref=(e\d+)', snapshot)
    return [(name, f"@{ref}") for name, ref in matches]
