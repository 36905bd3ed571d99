"""The tail is bounded, and no terminal interprets it."""

from __future__ import annotations

import pytest

from browser_shell.jobs.output_tail import MAX_CHARACTERS, MAX_LINE_CHARACTERS, OutputTail, plain_text


def test_the_last_lines_are_returned_and_the_cut_is_reported() -> None:
    tail = OutputTail()
    for piece in (b"first\nsec", b"ond\n", b"third\n"):
        tail.add(piece)
    assert tail.last_lines(2) == "second\nthird"
    assert tail.last_line() == "third"
    assert tail.last_lines(0) == ""
    assert tail.is_cut("second\nthird")
    assert not tail.is_cut("first\nsecond\nthird")


def test_a_flood_is_bounded() -> None:
    tail = OutputTail()
    for _ in range(1000):
        tail.add(b"x" * 10_000 + b"\n")
    tail.add(b"end")
    assert tail.last_line() == "end"
    assert len(tail.last_lines(100_000)) <= MAX_CHARACTERS
    assert len(b"".join(tail._pieces)) < 80 * 1024
    assert all(len(line) <= MAX_LINE_CHARACTERS + 1 for line in tail.last_lines(100).splitlines())


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("10 %\r100 %\r", "100 %"),
        ("a\x00b\tc", "a\N{REPLACEMENT CHARACTER}b\tc"),
        ("one\n\x1b[2Jtwo", "one\ntwo"),
    ],
)
def test_control_sequences_are_removed(written: str, plain: str) -> None:
    assert plain_text(written) == plain
