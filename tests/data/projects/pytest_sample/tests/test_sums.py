import time
from pathlib import Path

import pytest


def test_one_and_one_are_two():
    Path("/output/note.txt").write_text("two\n")
    assert 1 + 1 == 2


def test_one_and_one_are_three():
    assert 1 + 1 == 3, "one and one are not three"


@pytest.mark.skip(reason="the sample has a test of every outcome that a job's report counts; this is the skipped one")
def test_later(): ...


def test_for_ever():
    time.sleep(3600)


@pytest.mark.parametrize("number", [2, 4])
def test_even(number):
    assert number % 2 == 0
