"""docs/reference/errors.md says what the code does."""

from __future__ import annotations

from pathlib import Path

from browser_shell.core.errors import ErrorCode

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"


def test_the_documented_table_is_the_one_in_code() -> None:
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows == [f"| `{code.name}` | {code.exit_code} | {code.number} | {code.advice} |" for code in ErrorCode]


def test_every_number_is_used_once() -> None:
    assert len({code.number for code in ErrorCode}) == len(ErrorCode)
