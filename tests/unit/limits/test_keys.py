"""Keys of counters, observed at the gate."""

from __future__ import annotations

import pytest

from browser_shell.core.calls import Principal, ToolCall
from support.fakes import a_call
from support.gates import FAILED, a_local_gate, admits


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "browser-shell"), ("a", "run_pytest")),
        (("a/browser-shell", "x"), ("a", "browser-shell/x")),
        (("a", "x"), ("a\ud800", "x")),
        (("a", "x"), ("A", "x")),
    ],
)
async def test_each_subject_and_tool_is_counted_separately(one: tuple[str, str], other: tuple[str, str]) -> None:
    gate = a_local_gate(calls_per_minute=1)
    for subject, tool in (one, other):
        assert await admits(gate, a_call(subject=subject, tool=tool))
        assert not await admits(gate, a_call(subject=subject, tool=tool))


async def test_each_invalid_session_id_is_counted_separately() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    wrong = [a_call("open", session_id=session_id) for session_id in ("", "a b", "é")]
    assert [await admits(gate, call, FAILED) for call in (*wrong, wrong[0])] == [True, True, True, False]


async def test_a_repeated_call_with_another_timeout_is_the_same_call() -> None:
    gate = a_local_gate(budget={"max_retries": 0})
    calls = [
        ToolCall(
            call_id="c",
            principal=Principal(subject="u"),
            tool="browser-shell",
            arguments={"argv": ["wait", "#x"], "session_id": "s", "timeout_sec": seconds},
        )
        for seconds in (5, 6)
    ]
    assert [await admits(gate, call, FAILED) for call in calls] == [True, False]
