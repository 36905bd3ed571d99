"""Session ids of unchecked calls."""

from __future__ import annotations

import pytest

from browser_shell.core.json_values import JsonValue
from support.fakes import a_call


@pytest.mark.parametrize("session_id", ["", "../x", "-a", ".a", "a" * 65, "a\n", "a b", 5, None, ["a"]])
def test_a_malformed_session_id_is_ignored(session_id: JsonValue) -> None:
    assert a_call(session_id=session_id).session_id == ""


@pytest.mark.parametrize("session_id", ["a", "_a", "9", "A.b-c_d", "a" * 64])
def test_a_valid_session_id_is_returned(session_id: str) -> None:
    assert a_call(session_id=session_id).session_id == session_id


@pytest.mark.parametrize(
    ("argv", "session_id", "ends"), [("close", "s1", True), ("back", "s1", False), ("close", "", False)]
)
def test_only_close_with_a_valid_session_ends_the_session(argv: str, session_id: str, ends: bool) -> None:
    assert a_call(argv, session_id=session_id).ends_session is ends
