from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.results import CommandResult
from browser_shell.hooks.bound import MAX_LEVELS, BoundOutput, bound
from browser_shell.hooks.json_sizes import nests_within
from browser_shell.hooks.text_cuts import SHORTEST_CUT, cut, cut_longest_strings
from support.fakes import RecordingSandbox, a_call, a_pipeline, a_plan

DEFAULT = 30_000


def size(value: JsonValue) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def a_control(number: int) -> JsonObject:
    """As `screenshot --annotate` tells of a button."""
    box: JsonObject = {"height": 21, "width": 75, "x": 8, "y": number}
    return {"box": box, "name": f"Button {number}", "number": number, "ref": f"e{number}", "role": "button"}


def controls(count: int) -> list[JsonValue]:
    return [a_control(number) for number in range(count)]


def nested(levels: int, *, in_objects: bool) -> JsonValue:
    value: JsonValue = 1
    for _ in range(levels):
        value = {"k": value, "text": "x" * 100} if in_objects else [value]
    return value


def expect_whole_head(kept: JsonValue, given: list[JsonValue]) -> int:
    """How many first items stay, each as it was, with a marker that counts the others."""
    assert isinstance(kept, list)
    *head, marker = kept
    assert head == given[: len(head)]
    assert marker == f"…[{len(given) - len(head)} items cut]"
    return len(head)


def test_small_data_is_left_alone() -> None:
    data: JsonValue = {"a": ["x" * 100] * 3}
    assert bound(data, size(data)) == data
    assert bound(data, size(data) - 1) != data


def test_only_the_longest_string_is_cut() -> None:
    data: JsonObject = {"origin": "https://a.example/", "snapshot": "x" * 40_000, "items": ["y" * 300, "y" * 9000] * 2}
    cut_data = bound(data, DEFAULT)
    assert isinstance(cut_data, dict)
    assert cut_data["origin"] == data["origin"]
    assert cut_data["items"] == data["items"]
    assert str(cut_data["snapshot"]).endswith(" characters cut]")
    assert DEFAULT - 100 <= size(cut_data) <= DEFAULT


def test_the_marker_says_how_much_is_missing() -> None:
    text = str(bound("x" * 50_000, DEFAULT))
    kept = text.index("…")
    assert text[kept:] == f"…[{50_000 - kept} characters cut]"


def test_numbers_and_nothing_beside_a_long_string_stay() -> None:
    cut_data = bound({"text": "x" * 40_000, "count": 1.5, "title": None, "visible": True}, DEFAULT)
    assert isinstance(cut_data, dict)
    assert (cut_data["count"], cut_data["title"], cut_data["visible"]) == (1.5, None, True)


def test_a_number_without_end_gives_way_to_its_length() -> None:
    assert bound([10**4000, 1], 1000) == ["…[4001 characters cut]", 1]


def test_strings_are_not_cut_to_nothing() -> None:
    assert size(cut_longest_strings("x" * 1000, 10_000)) > SHORTEST_CUT - 50


def test_two_long_strings_share_the_cut() -> None:
    cut_data = bound(["a" * 20_000, "b" * 40_000], DEFAULT)
    assert isinstance(cut_data, list)
    lengths = [len(str(item)) for item in cut_data]
    assert abs(lengths[0] - lengths[1]) < 10


def test_a_snapshot_ends_at_a_whole_line() -> None:
    text = cut("\n".join(f'- button "b{number}" [ref=e{number}]' for number in range(1000)), 5000)
    assert text.splitlines()[-2].endswith("]")
    assert text.splitlines()[-1].startswith("…[")


@pytest.mark.parametrize(
    "data",
    [
        [1] * 100_000,
        [{"role": "button", "name": "b"}] * 5000,
        {f"e{number}": {"role": "button"} for number in range(5000)},
        {"refs": {f"e{number}": {"role": "button"} for number in range(5000)}, "snapshot": "x" * 30_000},
        [["a"] * 500] * 500,
        {"k" * 50_000: 1},
        {"k" * 50_000: "v" * 50_000, "a": 1},
        [10**4000] * 20,
        '"\n\\' * 20_000,
        "\x00" * 20_000,
        "😀" * 40_000,
        ["x" * 500] * 1000,
        {"k" * 4_000_000: 1, "a": 2},
        {f"key {number}": number for number in range(100_000)},
        [[[1, "a"]] * 1000] * 400,
        [[[number] * 100 for number in range(100)]] * 100,
        {"…": 1, **{f"e{number}": {"role": "button"} for number in range(5000)}},
        [nested(90, in_objects=True)] * 100,
    ],
    ids=range(18),
)
def test_large_data_of_any_shape_fits_and_stays_json(data: JsonValue) -> None:
    cut_data = bound(data, DEFAULT)
    assert size(cut_data) <= DEFAULT
    assert "cut]" in json.dumps(cut_data)


def test_the_head_of_a_long_list_stays_and_its_tail_is_counted() -> None:
    cut_data = bound(list(range(100_000)), DEFAULT)
    assert isinstance(cut_data, list)
    assert cut_data[:3] == [0, 1, 2]
    assert cut_data[-1] == f"…[{100_000 - (len(cut_data) - 1)} items cut]"


def test_the_first_of_900_annotations_stay_whole() -> None:
    data: JsonObject = {"annotations": controls(900), "path": "a.png"}
    cut_data = bound(data, DEFAULT)
    assert isinstance(cut_data, dict)
    assert cut_data["path"] == "a.png"
    assert expect_whole_head(cut_data["annotations"], controls(900)) > 250
    assert DEFAULT - 200 <= size(cut_data) <= DEFAULT


@pytest.mark.parametrize("limit", [1000, 5000, 200_000])
def test_a_list_gives_up_its_tail_at_any_limit(limit: int) -> None:
    cut_data = bound(controls(5000), limit)
    assert expect_whole_head(cut_data, controls(5000)) >= (limit - 200) // size(a_control(4999))


def test_the_first_keys_of_a_large_object_stay_whole() -> None:
    refs: JsonObject = {f"e{number}": a_control(number) for number in range(900)}
    cut_data = bound(refs, DEFAULT)
    assert isinstance(cut_data, dict)
    marker = cut_data.pop("…")
    assert list(cut_data.items()) == list(refs.items())[: len(cut_data)]
    assert len(cut_data) > 230
    assert marker == f"[{900 - len(cut_data)} keys cut]"


def test_a_text_and_a_list_that_are_both_too_large_share_the_room() -> None:
    cut_data = bound({"snapshot": "x" * 25_000, "annotations": controls(900)}, DEFAULT)
    assert isinstance(cut_data, dict)
    assert len(str(cut_data["snapshot"])) > 14_000
    assert expect_whole_head(cut_data["annotations"], controls(900)) > 120


def test_all_of_a_few_large_keys_stay() -> None:
    data: JsonObject = {f"frame {number}": controls(150) for number in range(8)}
    cut_data = bound(data, DEFAULT)
    assert isinstance(cut_data, dict)
    assert cut_data.keys() == data.keys()
    assert all(expect_whole_head(kept, controls(150)) > 25 for kept in cut_data.values())


def test_one_large_item_makes_room_for_the_small_ones_after_it() -> None:
    cut_data = bound([controls(900), *controls(50)], DEFAULT)
    assert isinstance(cut_data, list)
    assert cut_data[1:] == controls(50)
    assert expect_whole_head(cut_data[0], controls(900)) > 150


def test_of_a_few_large_items_as_many_stay_as_can_say_something() -> None:
    cut_data = bound([controls(900)] * 6, DEFAULT)
    assert isinstance(cut_data, list)
    assert cut_data[-1] == "…[2 items cut]"
    assert all(expect_whole_head(kept, controls(900)) > 50 for kept in cut_data[:-1])


def test_long_strings_in_items_are_cut_before_items_are_left_out() -> None:
    cut_data = bound([{"url": f"https://a.example/{number}", "body": "b" * 5000} for number in range(40)], DEFAULT)
    assert isinstance(cut_data, list)
    assert len(cut_data) == 40
    assert all(isinstance(item, dict) and str(item["body"]).endswith(" characters cut]") for item in cut_data)


def test_a_name_without_end_costs_only_itself() -> None:
    assert bound({"k" * 4_000_000: 1, "a": 2}, DEFAULT) == {"a": 2, "…": "[1 keys cut]"}


def test_a_key_that_looks_like_the_marker_gives_way_to_it() -> None:
    cut_data = bound({"…": "[0 keys cut]", **{f"e{number}": number for number in range(5000)}}, DEFAULT)
    assert isinstance(cut_data, dict)
    assert cut_data["…"] == f"[{5001 - (len(cut_data) - 1)} keys cut]"


@pytest.mark.parametrize("in_objects", [False, True])
@pytest.mark.parametrize("levels", [MAX_LEVELS + 1, 900, 100_000])
def test_what_nests_too_deep_for_readers_of_json_is_cut_there(levels: int, in_objects: bool) -> None:
    cut_data = bound(nested(levels, in_objects=in_objects), DEFAULT)
    assert nests_within(cut_data, MAX_LEVELS)
    assert size(cut_data) <= DEFAULT
    assert "cut]" in json.dumps(cut_data)


def test_what_nests_as_deep_as_is_allowed_is_left_alone() -> None:
    for data in (nested(MAX_LEVELS, in_objects=True), nested(MAX_LEVELS, in_objects=False)):
        assert bound(data, DEFAULT) is data


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=30), inner, max_size=30),
    max_leaves=80,
)
repeated = st.builds(lambda value, times: [value] * times, json_values, st.integers(min_value=1, max_value=200))


@given(data=json_values | repeated, limit=st.integers(min_value=200, max_value=3000))
def test_any_data_fits_and_stays_json(data: JsonValue, limit: int) -> None:
    cut_data = bound(data, limit)
    assert size(cut_data) <= limit
    assert json.loads(json.dumps(cut_data, allow_nan=False)) == cut_data
    assert bound(data, limit) == cut_data
    assert bound(cut_data, limit) is cut_data
    assert (cut_data is data) == (size(data) <= limit)


small_items = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8), min_size=1, max_size=4)


@given(items=st.lists(small_items, min_size=1, max_size=20), limit=st.integers(min_value=1000, max_value=3000))
def test_small_items_stay_whole_from_the_first_on(items: list[JsonValue], limit: int) -> None:
    many = items * 200
    cut_data = bound(many, limit)
    if cut_data is not many:
        kept = expect_whole_head(cut_data, many)
        assert size(many[: kept + 1]) > limit - 40


@pytest.mark.parametrize(
    "data",
    ["x" * 5000, "\ud83d" * 5000, list(range(5000)), controls(50), {str(key): key for key in range(5000)}],
    ids=["text", "half pairs", "list", "objects", "keys"],
)
async def test_stdout_is_within_the_limit_with_its_line_end(data: JsonValue) -> None:
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data=data))
    hooks = [BoundOutput(max_characters=1000)]
    stdout = (await a_pipeline(sandbox=sandbox, hooks=hooks).handle(a_call())).stdout
    assert 800 < len(stdout) <= 1000
    assert stdout.endswith("\n")
    json.loads(stdout)


@pytest.mark.parametrize(("length", "whole"), [(997, True), (998, False)])
async def test_the_line_end_counts_to_the_limit(length: int, whole: bool) -> None:
    result = CommandResult(exit_code=0, data="x" * length)
    bounded = await BoundOutput(max_characters=1000).after(a_call(), a_plan(), result)
    assert (bounded == result) is whole


async def test_the_client_is_told_of_too_many_levels() -> None:
    result = CommandResult(exit_code=0, data=nested(5000, in_objects=False))
    bounded = await BoundOutput().after(a_call(), a_plan(), result)
    assert bounded.message.startswith("OUTPUT_TRUNCATED: more than 100 levels")


async def test_the_client_is_told_that_something_is_missing() -> None:
    result = CommandResult(exit_code=0, data={"text": "x" * 2000}, message="a notice")
    bounded = await BoundOutput(max_characters=1000).after(a_call(), a_plan(), result)
    assert isinstance(bounded.data, dict)
    assert bounded.message.startswith("a notice\nOUTPUT_TRUNCATED: 2011 characters")
    assert bounded.exit_code == 0


async def test_small_output_carries_no_notice() -> None:
    result = CommandResult(exit_code=0, data={"text": "x"})
    assert await BoundOutput().after(a_call(), a_plan(), result) == result


async def test_the_message_is_bounded_too() -> None:
    result = CommandResult(exit_code=1, message="x" * 10_000)
    assert len((await BoundOutput().after(a_call(), a_plan(), result)).message) <= 4000
