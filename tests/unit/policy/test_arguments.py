"""The shape of a call's arguments."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.core.json_values import JsonValue
from browser_shell.policy.arguments import read_arguments


def refusal(arguments: JsonValue) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        read_arguments(arguments)
    return caught.value.rule_id


def with_argv(*items: JsonValue) -> JsonValue:
    return {"session_id": "s", "argv": list(items)}


def test_session_id_and_argv_are_enough() -> None:
    call = read_arguments({"session_id": "s1", "argv": ["snapshot"]})
    assert (call.session_id, call.argv, call.timeout_seconds) == ("s1", ("snapshot",), 30)


@pytest.mark.parametrize("arguments", [None, [], "x", 1, True, [["session_id", "s"]]])
def test_arguments_that_are_not_an_object_are_refused(arguments: JsonValue) -> None:
    assert refusal(arguments) == "arguments.shape"


@pytest.mark.parametrize("field", ["cwd", "env", "Argv", "timeout", "__proto__", ""])
def test_unknown_fields_are_refused(field: str) -> None:
    assert refusal({"session_id": "s", "argv": ["snapshot"], field: 1}) == "arguments.unknown_field"


@pytest.mark.parametrize("session_id", ["a", "_", "9", "A.b-c_d", "x" * 64])
def test_ordinary_session_ids_are_accepted(session_id: str) -> None:
    assert read_arguments({"session_id": session_id, "argv": ["snapshot"]}).session_id == session_id


@pytest.mark.promise("session:id-grammar")
@pytest.mark.parametrize(
    "session_id",
    [
        *("", ".", "..", "../x", "-p", ".a", "a b", "a\n", "\na", "a\tb", "a/b", "é", "\uff41", "a\u200b", "x" * 65),
        *(1, None, True, ["a"], {}),
    ],
)
def test_other_session_ids_are_refused(session_id: JsonValue) -> None:
    assert refusal({"session_id": session_id, "argv": ["snapshot"]}) == "arguments.session_id"


def test_a_call_without_session_or_argv_is_refused() -> None:
    assert refusal({"argv": ["snapshot"]}) == "arguments.session_id"
    assert refusal({"session_id": "s"}) == "arguments.argv"


@pytest.mark.parametrize("argv", [[], "snapshot", None, 1, {"0": "snapshot"}, ["x"] * 130])
def test_argv_must_be_a_list_of_1_to_129_items(argv: JsonValue) -> None:
    assert refusal({"session_id": "s", "argv": argv}) == "arguments.argv"


def test_argv_may_have_129_items() -> None:
    assert len(read_arguments(with_argv(*["x"] * 129)).argv) == 129


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (500, "500"),
        (-1, "-1"),
        (3.0, "3"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (1e21, "1e+21"),
        (True, "true"),
        (False, "false"),
        (12345678901234567890, "12345678901234567890"),
        ("", ""),
        ("a\nb", "a\nb"),
        ("x" * 8192, "x" * 8192),
    ],
)
def test_items_become_the_text_that_json_has_for_them(item: JsonValue, text: str) -> None:
    assert read_arguments(with_argv("fill", item)).argv == ("fill", text)


@pytest.mark.parametrize(
    "item",
    [None, [], ["x"], {}, {"a": 1}, float("nan"), float("inf"), 10**400, "a\0", "\0", "\ud800", "a\udfff", "x" * 8193],
)
def test_other_items_are_refused(item: JsonValue) -> None:
    with pytest.raises(ArgumentsInvalid) as caught:
        read_arguments(with_argv("fill", item))
    assert caught.value.rule_id == "arguments.argv_item"
    assert caught.value.public_message.startswith("argv[1]")


@pytest.mark.parametrize("timeout", [1, 30, 120])
def test_ordinary_timeouts_are_accepted(timeout: int) -> None:
    assert read_arguments({"session_id": "s", "argv": ["x"], "timeout_sec": timeout}).timeout_seconds == timeout


@pytest.mark.promise("timeout:never-clamped")
@pytest.mark.parametrize("timeout", [0, -1, 121, 10**30, 30.0, 0.0, 1.5, "30", "30s", None, True, False, [30], {}])
def test_other_timeouts_are_refused(timeout: JsonValue) -> None:
    assert refusal({"session_id": "s", "argv": ["x"], "timeout_sec": timeout}) == "arguments.timeout_sec"
