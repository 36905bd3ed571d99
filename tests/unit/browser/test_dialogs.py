"""Texts about dialogs: the question of the page, and the answers that the agent can give."""

from __future__ import annotations

import pytest

from browser_shell.browser.dialogs import Dialog
from browser_shell.core.errors import ErrorCode


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        ("confirm", ("dialog accept (OK)", "dialog dismiss (Cancel)")),
        ("prompt", ("dialog accept TEXT", "dialog dismiss (Cancel)")),
        ("beforeunload", ("dialog dismiss stays", "dialog accept leaves")),
    ],
)
def test_the_advice_names_the_answers_of_this_kind_of_dialog(kind: str, answers: tuple[str, str]) -> None:
    error = Dialog(kind=kind, message="m").error()
    assert error.code is ErrorCode.DIALOG_OPEN
    assert all(answer in error.advice for answer in answers)


def test_a_dialog_of_an_unknown_kind_gets_the_general_advice() -> None:
    assert Dialog(kind="new", message="m").error().advice == ""


def test_a_long_message_is_truncated_and_quoted() -> None:
    error = Dialog(kind="confirm", message="line\n" + "x" * 1000).error()
    assert "\n" not in error.public_message
    assert len(error.public_message) < 400


def test_the_note_names_the_question_and_the_commands() -> None:
    note = Dialog(kind="confirm", message="really?").note()
    assert "'really?'" in note
    assert "dialog accept or dialog dismiss" in note
    assert "dialog accept TEXT" in Dialog(kind="prompt", message="name?").note()
