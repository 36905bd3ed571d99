"""The shape of a call's arguments."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.core.json_values import JsonValue
from browser_shell.policy.arguments import read_arguments, split_steps


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


def with_steps(then: JsonValue, argv: list[JsonValue] | None = None) -> dict[str, JsonValue]:
    return {"session_id": "s", "argv": argv or ["open", "https://example.com/"], "then": then}


def test_a_call_without_then_is_one_step_with_the_same_arguments() -> None:
    arguments: JsonValue = {"session_id": "s", "argv": ["snapshot"], "timeout_sec": 5}
    assert split_steps(arguments) == (arguments,)
    assert split_steps(None) == (None,)


def test_each_step_has_the_arguments_of_a_call_of_its_own() -> None:
    steps = split_steps({**with_steps([["click", "@e1"], ["wait", 500]]), "timeout_sec": 9})
    assert [read_arguments(step).argv[0] for step in steps] == ["open", "click", "wait"]
    assert steps == (
        {"session_id": "s", "timeout_sec": 9, "argv": ["open", "https://example.com/"]},
        {"session_id": "s", "timeout_sec": 9, "argv": ["click", "@e1"]},
        {"session_id": "s", "timeout_sec": 9, "argv": ["wait", 500]},
    )


def test_an_empty_list_of_steps_is_the_same_as_none() -> None:
    assert split_steps(with_steps([])) == ({"session_id": "s", "argv": ["open", "https://example.com/"]},)


def test_thirteen_steps_are_accepted() -> None:
    assert len(split_steps(with_steps([["back"]] * 12))) == 13


@pytest.mark.promise("steps:closed-grammar")
@pytest.mark.parametrize(
    "then",
    [
        *(None, "click", {}, {"0": ["click", "@e1"]}, True, 1, [["back"]] * 13),
        *([None], ["click"], [{}], [{"argv": ["back"]}], [[]], [["back"], []], [["back"], "close"], [1], [True]),
        [["close"], ["back"]],
        [["screenshot"], ["pdf"], ["screenshot", "-f"], ["pdf"]],
    ],
    ids=str,
)
def test_malformed_steps_are_refused_as_a_whole(then: JsonValue) -> None:
    arguments = with_steps(then)
    assert split_steps(arguments) == (arguments,)
    assert refusal(arguments) == "arguments.then"


def test_close_is_refused_before_other_steps_and_accepted_as_the_last() -> None:
    assert refusal(with_steps([["back"]], ["close"])) == "arguments.then"
    assert len(split_steps(with_steps([["back"], ["close"]]))) == 3


def test_three_pictures_are_accepted() -> None:
    assert len(split_steps(with_steps([["screenshot"], ["pdf"], ["screenshot", "--full"]]))) == 4


@pytest.mark.parametrize(
    "step",
    [
        [["click", "@e1"]],
        [{"argv": ["back"]}],
        [None],
        ["click", ["@e1"]],
        ["x"] * 130,
        ["fill", "#a", "x" * 8193],
        ["fill", "#a", "\0"],
    ],
    ids=[*("list", "object", "null", "nested list", "many items", "long item", "NUL")],
)
def test_the_items_of_a_step_have_the_rules_of_argv(step: JsonValue) -> None:
    _, second = split_steps(with_steps([step]))
    assert refusal(second).startswith("arguments.argv")
