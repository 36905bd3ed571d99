from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.results import CommandResult
from browser_shell.hooks.bound import BoundOutput, bound, cut
from browser_shell.testing.fakes import a_call, a_plan

DEFAULT = 30_000


def size(value: JsonValue) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def test_small_data_is_left_alone() -> None:
    data: JsonValue = {"a": ["x" * 100] * 3}
    assert bound(data, size(data)) == data
    assert bound(data, size(data) - 1) != data


def test_only_the_longest_string_is_cut() -> None:
    data: JsonObject = {"origin": "https://a.example/", "snapshot": "x" * 40_000, "items": ["y" * 300] * 50}
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
    ],
    ids=range(12),
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


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=30), inner, max_size=30),
    max_leaves=80,
)


@given(data=json_values, limit=st.integers(min_value=200, max_value=3000))
def test_any_data_fits(data: JsonValue, limit: int) -> None:
    assert size(bound(data, limit)) <= limit


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
