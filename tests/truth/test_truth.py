"""The truth table: a command has its effect, as the page reports it, or it is an error and the page is untouched."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future

import pytest

from support.truth import Row
from truth import (
    rows_choices,
    rows_click,
    rows_fill,
    rows_find,
    rows_frames,
    rows_keys,
    rows_pointer,
    rows_reading,
    rows_refs,
    rows_targets,
)

ROWS: tuple[Row, ...] = (
    *rows_fill.ROWS,
    *rows_keys.ROWS,
    *rows_choices.ROWS,
    *rows_click.ROWS,
    *rows_targets.ROWS,
    *rows_pointer.ROWS,
    *rows_reading.ROWS,
    *rows_frames.ROWS,
    *rows_refs.ROWS,
    *rows_find.ROWS,
)


@pytest.mark.promise("acts:true-or-error")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_command_is_true_or_an_error(row: Row, findings: dict[str, Future[list[str]]]) -> None:
    wrong = findings[row.id].result(timeout=300)
    assert not wrong, "\n".join([f"{row.argv} on {row.html}", *wrong])


def test_each_row_has_its_own_sentence() -> None:
    assert [sentence for sentence, count in Counter(row.id for row in ROWS).items() if count > 1] == []
