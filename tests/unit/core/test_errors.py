"""Exceptions and error codes, compared with their documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from browser_shell.core import errors
from browser_shell.core.errors import BrowserShellError, ErrorCode

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"


def documented_tree() -> list[tuple[int, str]]:
    """Depth and name of each line of the tree in the module's docstring."""
    lines = (errors.__doc__ or "").splitlines()
    found = [re.fullmatch(r"([│├└─ ]*)([A-Z]\w+)  .*", line) for line in lines[1:]]
    return [(len(match[1]) // 4, match[2]) for match in found if match]


def actual_tree(parent: type[BrowserShellError] = BrowserShellError, depth: int = 0) -> Iterator[tuple[int, str]]:
    yield depth, parent.__name__
    for child in parent.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from actual_tree(child, depth + 1)


def test_the_tree_in_the_docstring_names_every_exception_below_its_parent() -> None:
    assert documented_tree() == list(actual_tree())


def test_the_tree_in_the_docstring_gives_the_exit_codes() -> None:
    exit_codes = re.findall(r"(\w+)  .*\(exit (\d+)\)", errors.__doc__ or "")
    assert len(exit_codes) >= 10
    for name, exit_code in exit_codes:
        assert getattr(errors, name).code.exit_code == int(exit_code), name


def test_the_reference_page_has_the_table_of_the_code() -> None:
    rows = [line for line in REFERENCE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows == [f"| `{code.name}` | {code.exit_code} | {code.number} | {code.advice} |" for code in ErrorCode]


def test_every_error_number_is_used_once() -> None:
    assert len({code.number for code in ErrorCode}) == len(ErrorCode)
